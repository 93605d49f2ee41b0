"""Builds Horovod's wheel from its source package, for the torch of the environment that runs this.

Horovod 0.28.1 (2023) expects a torch of its time. So its source is changed in these places (``CHANGES``):

- Its C++ standard is 14. It becomes the lowest standard that the headers of the installed torch accept.
- It builds for GPUs whenever torch was built for CUDA and a CUDA compiler is found. Here it does so only if
  the variable HOROVOD_GPU_OPERATIONS asks for it.
- Its CUDA kernels are C++11. They become C++17, because the compilers of CUDA 13 know no older standard.
- Its own flags are -O3 with debugging information. They become -O1 without it, so that the build takes 0.56
  of the time. Here Horovod only exchanges data: the sum of 100 MB of two processes takes about 0.1 s longer.
- It imports ``distutils``, which Python 3.12 and later do not have. ``sysconfig`` and ``shutil`` replace it.
"""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

import cuda_toolkit

from bertdata.errors import AssetError, MissingExtraError
from bertdata.io.process_pool import count_available_cores

VERSION = "0.28.1"
STANDARDS = (17, 20, 23)
"""C++ standards to try, in this order."""
# cmake 4 refuses the old version of the library gloo in Horovod's source.
BUILD_TOOLS = ("cmake<4", "setuptools<81", "wheel", "packaging")
LOG_LINES = 15
"""Number of lines at the end of a failed build's log that are printed."""
BUILD_SETTINGS = {
    "HOROVOD_WITH_PYTORCH": "1",
    "HOROVOD_WITH_GLOO": "1",
    "HOROVOD_WITHOUT_MPI": "1",
    "HOROVOD_WITHOUT_TENSORFLOW": "1",
    "HOROVOD_WITHOUT_MXNET": "1",
    "HOROVOD_WITHOUT_NVTX": "1",
}
FOR_GPU = 'NOT "$ENV{HOROVOD_GPU_OPERATIONS}" STREQUAL ""'

Change = tuple[str, str, str]
"""A change of the source: the file, a text that occurs in it exactly once, and the text that replaces it."""

CHANGES: tuple[Change, ...] = (
    ("CMakeLists.txt", "set(CMAKE_CXX_STANDARD 14)", "set(CMAKE_CXX_STANDARD {standard})"),
    ("horovod/torch/CMakeLists.txt", "set(CMAKE_CXX_STANDARD 14)", "set(CMAKE_CXX_STANDARD {standard})"),
    (
        "CMakeLists.txt",
        'string(REPLACE "-O2" "-O3" CMAKE_CXX_FLAGS_RELWITHDEBINFO ',
        'string(REPLACE "-O2 -g" "-O1" CMAKE_CXX_FLAGS_RELWITHDEBINFO ',
    ),
    (
        "CMakeLists.txt",
        "check_language(CUDA)\nif(NOT CMAKE_CUDA_COMPILER)\n",
        f"if({FOR_GPU})\ncheck_language(CUDA)\nelse()\nset(CMAKE_CUDA_COMPILER NOTFOUND)\nendif()\n"
        f"if({FOR_GPU} AND NOT CMAKE_CUDA_COMPILER)\n",
    ),
    (
        "cmake/Modules/FindPytorch.cmake",
        "print(True if ((torch.version.cuda is not None) and (CUDA_HOME is not None)) else False)",
        "print(bool(torch.version.cuda and CUDA_HOME and '$ENV{HOROVOD_GPU_OPERATIONS}'))",
    ),
    ("horovod/common/ops/cuda/CMakeLists.txt", "set(CMAKE_CUDA_STANDARD 11)", "set(CMAKE_CUDA_STANDARD 17)"),
    (
        "horovod/torch/CMakeLists.txt",
        "from distutils.sysconfig import get_python_inc; print(get_python_inc())",
        "import sysconfig; print(sysconfig.get_paths()['include'])",
    ),
    (
        "horovod/runner/js_run.py",
        "from distutils.spawn import find_executable",
        "from shutil import which as find_executable",
    ),
)


def build_wheel(kept: Path, gpu_operations: str) -> Path:
    """Build the wheel, and put it and the log of the build into the directory ``kept``.

    Return the wheel's path.

    gpu_operations: "NCCL" for GPUs, or "" for processors.
    """
    for program in (_find_compiler(), "make"):
        if shutil.which(program) is None:
            raise MissingExtraError(
                f"{program}: no such program; a C++ compiler and make are needed to build Horovod"
            )
    standard = find_standard()
    kept.mkdir(parents=True, exist_ok=True)
    print(
        f"Building Horovod {VERSION} for {gpu_operations or 'processors'} in C++{standard}, once for this "
        f"user, Python and torch: two to four minutes on two cores (log: {kept / 'build.log'}) ...",
        flush=True,
    )
    with tempfile.TemporaryDirectory(prefix="horovod-") as place:
        tools = Path(place, "tools")
        run_pip("install", "--target", str(tools), *BUILD_TOOLS)
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("HOROVOD_GPU_")},
            **BUILD_SETTINGS,
            **(_find_gpu_settings(gpu_operations, Path(place, "cuda")) if gpu_operations else {}),
            "PATH": os.pathsep.join([str(tools / "bin"), os.environ.get("PATH", os.defpath)]),
            "PYTHONPATH": str(tools),
            "MAKEFLAGS": f"-j{count_available_cores()}",
        }
        isolation = ("--no-build-isolation", "--no-deps")
        source = ("--no-binary=horovod", f"horovod=={VERSION}")
        run_pip("download", *isolation, "--dest", place, *source, environment=environment)
        patch_source(unpacked := unpack_source(Path(place)), standard)
        options = ("--verbose", *isolation, "--wheel-dir", place)
        run_command(
            [sys.executable, "-m", "pip", "wheel", *options, str(unpacked)],
            "Horovod could not be built",
            environment=environment,
            log=kept / "build.log",
        )
        (wheel,) = Path(place).glob("horovod-*.whl")
        # The wheel is copied under a temporary name and then renamed, because another build may run at the
        # same time.
        shutil.copyfile(wheel, unfinished := kept / f"{wheel.name}.{os.getpid()}")
        os.replace(unfinished, kept / wheel.name)
    return kept / wheel.name


def find_standard() -> int:
    """Return the lowest C++ standard that the headers of the installed torch accept, such as 17 for C++17."""
    torch = Path(importlib.metadata.distribution("torch").locate_file("torch/include"))
    folders = [torch, torch / "torch/csrc/api/include", sysconfig.get_paths()["include"]]
    searched = [word for folder in folders for word in ("-isystem", str(folder))]
    for standard in STANDARDS:
        # Running the preprocessor is enough, because the headers refuse an older standard with #error.
        command = [_find_compiler(), f"-std=c++{standard}", "-E", "-x", "c++", *searched, "-"]
        done = subprocess.run(
            command, input="#include <torch/extension.h>\n", text=True, capture_output=True, check=False
        )
        if not done.returncode:
            return standard
    errors = [line for line in done.stderr.splitlines() if "error" in line] or [""]
    raise MissingExtraError(
        f"{_find_compiler()} cannot read the headers of torch {importlib.metadata.version('torch')} "
        f"in C++{' or '.join(map(str, STANDARDS))}: {errors[0].strip()}"
    )


def unpack_source(place: Path) -> Path:
    """Unpack Horovod's source package in the directory ``place``, and return the directory of the source."""
    (archive,) = place.glob("horovod-*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(place, filter="data")
    return place / f"horovod-{VERSION}"


def patch_source(source: Path, standard: int) -> None:
    """Replace the texts of CHANGES in Horovod's source.

    Raises AssetError unless each text occurs exactly once.

    standard: the C++ standard to build with, such as 17.
    """
    for name, old, new in CHANGES:
        text = (source / name).read_text(encoding="utf-8")
        if (found := text.count(old)) != 1:
            raise AssetError(f"horovod {VERSION}: {name}: {found} times {old!r}, expected once")
        new = new.replace("{standard}", str(standard))
        (source / name).write_text(text.replace(old, new), encoding="utf-8")


def run_pip(command: str, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
    """Run a command of pip. If it fails, raise AssetError with the last line of pip's output.

    environment: additional environment variables.
    """
    whole = [sys.executable, "-m", "pip", command, "--quiet", *arguments]
    run_command(whole, f"pip {command} failed", environment=environment)


def run_command(
    command: list[str],
    failure: str,
    environment: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> None:
    """Run a command. Raises AssetError if it fails.

    failure: beginning of the error message. The last line of output follows it, or the end of the log.
    environment: additional environment variables.
    log: file for the output. None: the output is not kept.
    """
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


def _find_gpu_settings(operations: str, place: Path) -> dict[str, str]:
    """Return the environment variables for a build for GPUs. They are empty for a build for processors.

    operations: "NCCL" for GPUs, or "" for processors.
    place: directory for packages and links that the build needs.
    """
    return {**cuda_toolkit.find_build_variables(place, run_pip), "HOROVOD_GPU_OPERATIONS": operations}


def _find_compiler() -> str:
    """Return the name of the C++ compiler to use."""
    return os.environ.get("CXX", "c++")
