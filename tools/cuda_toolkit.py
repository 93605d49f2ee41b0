"""Finds a CUDA toolkit and NVIDIA's library NCCL, with which Horovod is built for GPUs.

They may be installed on the system. Otherwise they come from pip: torch's packages bring NCCL's headers and
library, and CUDA's libraries, in the folder ``nvidia``. The package ``cuda-toolkit`` has the compiler of the
same version as an extra.
"""

import importlib.metadata
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from bertdata.errors import MissingExtraError

TOOLKIT_EXTRAS = "nvcc,cudart,cccl"
"""Names of the extras of the package cuda-toolkit that are needed to build Horovod."""
SYSTEM_NCCL = Path("/usr/include/nccl.h")


def find_build_variables(place: Path, pip: Callable[..., None]) -> dict[str, str]:
    """Return the environment variables with which Horovod is built for CUDA and NCCL.

    Raises MissingExtraError if torch is not built for CUDA, or if no toolkit or no NCCL is found for it.

    place: directory for packages and links that the build needs.
    pip: function that runs pip with its arguments, such as ``pip("install", ...)``.
    """
    import torch

    cuda = torch.version.cuda
    if cuda is None:
        raise MissingExtraError(
            f"HOROVOD_GPU_OPERATIONS is set, but torch {torch.__version__} has no CUDA: "
            "install the CUDA build of torch"
        )
    return {**find_toolkit(cuda, place, pip), **find_nccl(place)}


def find_toolkit(cuda: str, place: Path, pip: Callable[..., None]) -> dict[str, str]:
    """Return the environment variables that name the directory of a CUDA toolkit.

    If the system has a toolkit that fits, it is used. Otherwise a toolkit is installed with pip.

    cuda: version of CUDA for which torch was built, such as "13.2". The toolkit must have the same major
        version.
    place: directory in which pip installs the toolkit.
    pip: function that runs pip with its arguments, such as ``pip("install", ...)``.
    """
    seen = []
    for home in find_system_homes():
        version = read_compiler_version(home)
        if version is not None and version.split(".")[0] == cuda.split(".")[0]:
            return _list_variables(home)
        seen.append(f"{home} ({version or 'no bin/nvcc, include/cuda_runtime.h'})")
    try:
        release = importlib.metadata.version("cuda-toolkit")
    except importlib.metadata.PackageNotFoundError:
        raise MissingExtraError(
            f"no toolkit of CUDA {cuda}, for which torch was built: set CUDA_HOME to one; "
            f"looked at {', '.join(seen) or 'no directory'}, and for the package cuda-toolkit"
        ) from None
    pip("install", "--target", str(place), f"cuda-toolkit[{TOOLKIT_EXTRAS}]=={release}")
    (home,) = (place / "nvidia").glob("cu[0-9]*")
    _link_libraries(home / "lib", home / "lib")
    if not (home / "lib64").exists():
        (home / "lib64").symlink_to("lib")
    return _list_variables(home)


def find_system_homes() -> list[Path]:
    """Return the directories of the CUDA toolkits on this system.

    They are looked for in environment variables, in the PATH and in the usual place.
    """
    named = [os.environ.get(name) for name in ("HOROVOD_CUDA_HOME", "CUDA_HOME", "CUDA_PATH")]
    if (compiler := shutil.which("nvcc")) is not None:
        named.append(str(Path(compiler).resolve().parent.parent))
    found = [Path(name) for name in (*named, "/usr/local/cuda") if name]
    return [home for home in dict.fromkeys(found) if home.is_dir()]


def read_compiler_version(home: Path) -> str | None:
    """Return the version of the compiler in a toolkit's directory, such as "13.0".

    Returns None if the compiler or the headers are missing.
    """
    compiler = home / "bin" / "nvcc"
    if not compiler.exists() or not (home / "include" / "cuda_runtime.h").exists():
        return None
    done = subprocess.run([str(compiler), "--version"], capture_output=True, text=True, check=False)
    match = re.search(r"release (\d+\.\d+)", done.stdout)
    return match.group(1) if match else None


def find_nccl(place: Path) -> dict[str, str]:
    """Return the environment variables that name the NCCL in torch's packages.

    The result is empty if HOROVOD_NCCL_HOME is set or if the system has NCCL. The build then finds it by
    itself.

    place: directory for links to the library.
    """
    if "HOROVOD_NCCL_HOME" in os.environ or SYSTEM_NCCL.exists():
        return {}
    import torch

    packages = Path(torch.__file__).parent.parent / "nvidia" / "nccl"
    if not (packages / "include" / "nccl.h").exists():
        raise MissingExtraError("no nccl.h: set HOROVOD_NCCL_HOME to NVIDIA's NCCL")
    links = place / "nccl"
    links.mkdir(parents=True, exist_ok=True)
    _link_libraries(packages / "lib", links)
    return {
        "HOROVOD_NCCL_INCLUDE": str(packages / "include"),
        "HOROVOD_NCCL_LIB": str(links),
        "HOROVOD_NCCL_LINK": "SHARED",
    }


def _list_variables(home: Path) -> dict[str, str]:
    """Return the environment variables that tell the build where the toolkit is."""
    names = ("HOROVOD_CUDA_HOME", "CUDA_HOME", "CUDAToolkit_ROOT")
    return dict.fromkeys(names, str(home))


def _link_libraries(libraries: Path, links: Path) -> None:
    """Make a link to each shared library, under its name without a version, because linkers look for such
    names.

    libraries: directory of the libraries.
    links: directory for the links.
    """
    for library in sorted(libraries.glob("*.so.*")):
        link = links / f"{library.name.partition('.so.')[0]}.so"
        if not link.exists():
            link.symlink_to(library)
