"""Installs Horovod's wheel for the installed torch. The wheel is built once and kept in the user's cache.

The wheel's directory (see bertdata.io.assets) is named after the versions of Horovod, Python and torch, and
after the type of build: ``gloo`` for processors, ``nccl`` for GPUs. For GPUs, set
HOROVOD_GPU_OPERATIONS=NCCL.

    python tools/install_horovod.py [any option of pip install]
"""

import importlib.metadata
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from horovod_build import VERSION, build_wheel, run_command, run_pip

from bertdata.errors import BertDataError, MissingExtraError, SettingsError
from bertdata.io import assets


def main(pip_options: Sequence[str]) -> int:
    """Install Horovod and return the exit status.

    It is 0 if Horovod was installed, 1 if the build or the installation failed, and 2 if a requirement is
    missing.
    """
    try:
        install_wheel(pip_options)
    except BertDataError as error:
        print(f"install_horovod: error: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print("install_horovod: interrupted", file=sys.stderr)
        return 130
    return 0


def install_wheel(pip_options: Sequence[str]) -> None:
    """Install Horovod from the wheel for this torch. If there is no such wheel yet, build it first."""
    wheel = find_kept_wheel() or build_wheel(find_wheel_directory(), read_gpu_operations())
    if find_installed_wheel() == wheel.as_uri():
        return
    # Without this, pip would keep an installed wheel of the same version that was built for another torch.
    if find_installed_wheel() is not None:
        run_pip("uninstall", "--yes", "horovod")
    run_pip("install", *pip_options, str(wheel))
    built = "gloo_built() and h.nccl_built()" if read_gpu_operations() else "gloo_built()"
    run_command(
        [sys.executable, "-c", f"import horovod.torch as h; raise SystemExit(not (h.{built}))"],
        "the installed Horovod does not load",
    )


def read_gpu_operations() -> str:
    """Return the library that Horovod uses to exchange data between GPUs, from HOROVOD_GPU_OPERATIONS.

    It is "NCCL", or "" for a build for processors.
    """
    asked = os.environ.get("HOROVOD_GPU_OPERATIONS", "")
    if asked not in ("", "NCCL"):
        raise SettingsError(f"HOROVOD_GPU_OPERATIONS={asked}: expected NCCL, or nothing for processors")
    return asked


def find_wheel_directory() -> Path:
    """Return the directory in the cache for the wheel that fits this Python, this torch and the type of
    build.
    """
    try:
        torch = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        raise MissingExtraError(
            "torch is not installed; Horovod is built against it: pip install --editable '.[train]'"
        ) from None
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    kind = read_gpu_operations().lower() or "gloo"
    return assets.find_cache_directory() / "wheels" / f"horovod-{VERSION}-{python}-torch-{torch}-{kind}"


def find_kept_wheel() -> Path | None:
    """Return the wheel in the cache that fits this Python and platform. Returns None if there is none."""
    from packaging.tags import sys_tags
    from packaging.utils import parse_wheel_filename

    ours = set(sys_tags())
    for path in sorted(find_wheel_directory().glob("*.whl")):
        if not ours.isdisjoint(parse_wheel_filename(path.name)[3]):
            return path
    return None


def find_installed_wheel() -> str | None:
    """Return the URL from which the installed Horovod was installed.

    The result is "" if the URL is not known, and None if Horovod is not installed.
    """
    try:
        record = importlib.metadata.distribution("horovod").read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        return None
    return str(json.loads(record)["url"]) if record else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
