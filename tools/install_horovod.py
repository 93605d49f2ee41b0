"""Horovod's wheel for the installed torch: built once, kept in the user's cache, installed from there.

Horovod 0.28.1 is compiled as C++14, which the headers of PyTorch 2.1 and later refuse, so two lines of its
source package are changed before the build. The wheel is kept in the user's cache (bertdata.io.assets), in a
directory named after Horovod's version, torch's, and the library for GPU operations.

    python tools/install_horovod.py [any option of pip install]
"""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from bertdata.errors import AssetError, BertDataError, MissingExtraError
from bertdata.io import assets
from bertdata.io.process_pool import available_cores

VERSION = "0.28.1"
PATCHED = ("CMakeLists.txt", "horovod/torch/CMakeLists.txt")
OLD_LINE = "set(CMAKE_CXX_STANDARD 14)"
NEW_LINE = "set(CMAKE_CXX_STANDARD 17)"
BUILD_TOOLS = ("cmake<4", "setuptools<81", "wheel", "packaging")  # its bundled gloo predates cmake 4
LOG_LINES = 15
"""Lines of a failed build's log that are shown."""
BUILD_SETTINGS = {
    "HOROVOD_WITH_PYTORCH": "1",
    "HOROVOD_WITH_GLOO": "1",
    "HOROVOD_WITHOUT_MPI": "1",
    "HOROVOD_WITHOUT_TENSORFLOW": "1",
    "HOROVOD_WITHOUT_MXNET": "1",
}


def main(pip_options: Sequence[str]) -> int:
    """Install Horovod; exit status 0 installed, 1 build or install failed, 2 a requirement is missing."""
    try:
        install(pip_options)
    except BertDataError as error:
        print(f"install_horovod: error: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print("install_horovod: interrupted", file=sys.stderr)
        return 130
    return 0


def install(pip_options: Sequence[str]) -> None:
    """Install Horovod from the wheel for this torch; build the wheel first where there is none."""
    wheel = kept_wheel() or build_wheel()
    if installed_from() == wheel.as_uri():
        return
    if installed_from() is not None:  # pip would keep the same version built for another torch
        _pip("uninstall", "--yes", "horovod")
    _pip("install", *pip_options, str(wheel))
    _run(
        [sys.executable, "-c", "import horovod.torch as h; raise SystemExit(not h.gloo_built())"],
        "the installed Horovod does not load",
    )


def wheel_directory() -> Path:
    """The directory of the wheel for this torch."""
    try:
        torch = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        raise MissingExtraError(
            "torch is not installed; Horovod is built against it: pip install '.[train]'"
        ) from None
    on_gpu = os.environ.get("HOROVOD_GPU_OPERATIONS", "")
    name = f"horovod-{VERSION}-torch-{torch}" + (f"-{on_gpu.lower()}" if on_gpu else "")
    return assets.cache_directory() / "wheels" / name


def kept_wheel() -> Path | None:
    """The wheel in the cache for this Python and platform, or None."""
    from packaging.tags import sys_tags
    from packaging.utils import parse_wheel_filename

    ours = set(sys_tags())
    for path in sorted(wheel_directory().glob("*.whl")):
        if not ours.isdisjoint(parse_wheel_filename(path.name)[3]):
            return path
    return None


def installed_from() -> str | None:
    """The URL of the installed Horovod's wheel: "" if unknown, None if Horovod is not installed."""
    try:
        record = importlib.metadata.distribution("horovod").read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        return None
    import json

    return str(json.loads(record)["url"]) if record else ""


def build_wheel() -> Path:
    """Build the wheel from the patched source package and put it into the cache."""
    for program in (os.environ.get("CXX", "c++"), "make"):
        if shutil.which(program) is None:
            raise MissingExtraError(
                f"{program}: no such program; a C++17 compiler and make are needed to build Horovod"
            )
    kept = wheel_directory()
    kept.mkdir(parents=True, exist_ok=True)
    print(
        f"Building Horovod {VERSION}, once for this user and this torch: about five minutes on two cores "
        f"(log: {kept / 'build.log'}) ...",
        flush=True,
    )
    with tempfile.TemporaryDirectory(prefix="horovod-") as place:
        tools = Path(place, "tools")
        _pip("install", "--target", str(tools), *BUILD_TOOLS)
        environment = {
            **os.environ,
            **BUILD_SETTINGS,
            "PATH": os.pathsep.join([str(tools / "bin"), os.environ.get("PATH", os.defpath)]),
            "PYTHONPATH": str(tools),
            "MAKEFLAGS": f"-j{available_cores()}",
        }
        isolation = ("--no-build-isolation", "--no-deps")
        source = ("--no-binary=horovod", f"horovod=={VERSION}")
        _pip("download", *isolation, "--dest", place, *source, environment=environment)
        patch(unpacked := unpack(Path(place)))
        _run(
            [
                sys.executable,
                "-m",
                "pip",
                "wheel",
                "--verbose",
                *isolation,
                "--wheel-dir",
                place,
                str(unpacked),
            ],
            "Horovod could not be built",
            environment=environment,
            log=kept / "build.log",
        )
        (wheel,) = Path(place).glob("horovod-*.whl")
        # Copied under another name, then renamed: another build may run at the same time.
        shutil.copyfile(wheel, unfinished := kept / f"{wheel.name}.{os.getpid()}")
        os.replace(unfinished, kept / wheel.name)
    return kept / wheel.name


def unpack(place: Path) -> Path:
    """Unpack the source package in ``place``; its directory."""
    (archive,) = place.glob("horovod-*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(place, filter="data")
    return place / f"horovod-{VERSION}"


def patch(source: Path) -> None:
    """Change C++14 to C++17 in each file; AssetError unless the line occurs exactly once."""
    for name in PATCHED:
        text = (source / name).read_text(encoding="utf-8")
        if (found := text.count(OLD_LINE)) != 1:
            raise AssetError(f"horovod {VERSION}: {name}: {found} lines {OLD_LINE!r}, expected one")
        (source / name).write_text(text.replace(OLD_LINE, NEW_LINE), encoding="utf-8")


def _pip(command: str, *arguments: str, environment: dict[str, str] | None = None) -> None:
    whole = [sys.executable, "-m", "pip", command, "--quiet", *arguments]
    _run(whole, f"pip {command} failed", environment=environment)


def _run(
    command: list[str],
    failure: str,
    environment: dict[str, str] | None = None,
    log: Path | None = None,
) -> None:
    """Run the command; AssetError with ``failure`` and its last line of output, or the end of its log."""
    with open(log, "w") if log is not None else nullcontext() as file:
        done = subprocess.run(
            command,
            env=environment,
            stdout=file or subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    if not done.returncode:
        return
    if log is not None:
        end = log.read_text(errors="replace").splitlines()[-LOG_LINES:]
        raise AssetError("\n".join([f"{failure}; the end of {log}:", *end]))
    lines = (done.stdout or "").strip().splitlines()
    raise AssetError(f"{failure}: {lines[-1]}" if lines else failure)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
