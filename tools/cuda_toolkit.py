"""Find a CUDA toolkit and NCCL to build Horovod for GPUs: the system's, or those of torch's pip packages.

Wheels of torch from a package index bring NCCL's headers and library, and CUDA's libraries, in the folder
``nvidia``. The compiler of the same version is also a package, an extra of ``cuda-toolkit``.
"""

import importlib.metadata
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from bertdata.errors import MissingExtraError

PARTS = "nvcc,cudart,cccl"
"""Extras of the package cuda-toolkit that a build of Horovod needs."""
SYSTEM_NCCL = Path("/usr/include/nccl.h")


def find_build_variables(place: Path, pip: Callable[..., None]) -> dict[str, str]:
    """Return the environment variables for building with CUDA and NCCL.

    place: directory for packages and links that the build needs. pip: ``pip("install", ...)`` runs pip.
        Raises MissingExtraError if torch has no CUDA, or if there is no toolkit or NCCL for it.
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
    """Return the variables that name a toolkit: the system's, or else pip's.

    cuda: version of torch's CUDA, such as "13.2". The toolkit must have the same major version.
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
    pip("install", "--target", str(place), f"cuda-toolkit[{PARTS}]=={release}")
    (home,) = (place / "nvidia").glob("cu[0-9]*")
    _link_libraries(home / "lib", home / "lib")
    if not (home / "lib64").exists():
        (home / "lib64").symlink_to("lib")
    return _list_variables(home)


def find_system_homes() -> list[Path]:
    """Return the existing directories of toolkits: from the environment, the PATH and the usual places."""
    named = [os.environ.get(name) for name in ("HOROVOD_CUDA_HOME", "CUDA_HOME", "CUDA_PATH")]
    if (compiler := shutil.which("nvcc")) is not None:
        named.append(str(Path(compiler).resolve().parent.parent))
    found = [Path(name) for name in (*named, "/usr/local/cuda") if name]
    return [home for home in dict.fromkeys(found) if home.is_dir()]


def read_compiler_version(home: Path) -> str | None:
    """Return the version of a toolkit's compiler, such as "13.0".

    Returns None if compiler or headers are missing.
    """
    compiler = home / "bin" / "nvcc"
    if not compiler.exists() or not (home / "include" / "cuda_runtime.h").exists():
        return None
    done = subprocess.run([str(compiler), "--version"], capture_output=True, text=True, check=False)
    match = re.search(r"release (\d+\.\d+)", done.stdout)
    return match.group(1) if match else None


def find_nccl(place: Path) -> dict[str, str]:
    """Return the variables that name NCCL in torch's packages.

    The result is empty if HOROVOD_NCCL_HOME is set or the system has NCCL, because the build then finds it.
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
    """Return the variables that name a toolkit's directory."""
    names = ("HOROVOD_CUDA_HOME", "CUDA_HOME", "CUDAToolkit_ROOT")
    return dict.fromkeys(names, str(home))


def _link_libraries(libraries: Path, links: Path) -> None:
    """Link each shared library under a name without version, which linkers look for."""
    for library in sorted(libraries.glob("*.so.*")):
        link = links / f"{library.name.partition('.so.')[0]}.so"
        if not link.exists():
            link.symlink_to(library)
