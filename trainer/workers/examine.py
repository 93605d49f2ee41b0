"""Search for the launchers (torchrun, horovodrun, poprun) on this machine, for the command ``doctor``. Works
without torch.
"""

import shutil
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from trainer.devices.availability import Availability
from trainer.devices.choice import report_missing_torch


def examine_launchers() -> list[Availability]:
    """Return for each launcher whether this machine has it."""
    return [_examine_torchrun(), _examine_horovodrun(), _examine_poprun()]


def _examine_torchrun() -> Availability:
    if find_spec("torch") is None:
        return report_missing_torch("torchrun")
    import torch
    import torch.distributed as dist

    built = {"gloo": "is_gloo_available", "NCCL": "is_nccl_available", "MPI": "is_mpi_available"}
    has = [name for name, test in built.items() if dist.is_available() and getattr(dist, test, bool)()]
    found = f"torch {torch.__version__}: {', '.join(has) or 'no backend'}; also --dist --world-size N"
    return Availability("torchrun", bool(has), found, "" if has else "install a build of torch that has gloo")


def _examine_horovodrun() -> Availability:
    if find_spec("torch") is None:
        return report_missing_torch("horovodrun")
    if find_spec("horovod") is None:
        return Availability("horovodrun", False, "Horovod is not installed", "make horovod builds it")
    import torch

    build = f"Horovod {find_version('horovod')}"
    remedy = "make horovod builds one that fits"
    try:
        import horovod.torch as hvd
    except ImportError:
        return Availability("horovodrun", False, f"{build} does not fit torch {torch.__version__}", remedy)
    built = {"gloo": hvd.gloo_built(), "NCCL": hvd.nccl_built(), "MPI": hvd.mpi_built()}
    has = ", ".join(name for name, there in built.items() if there)
    return Availability("horovodrun", True, f"{build}: {has}; fits torch {torch.__version__}")


def _examine_poprun() -> Availability:
    if shutil.which("poprun") and find_spec("popdist"):
        return Availability("poprun", True, f"popdist {find_version('popdist')}")
    return Availability("poprun", False, "not installed", "for IPUs only: part of Graphcore's Poplar SDK")


def find_version(package: str) -> str:
    """Return the version of a package that can be imported, as text."""
    try:
        return version(package)
    # the package can be imported without being installed, for example from a source directory
    except PackageNotFoundError:
        return "of unknown version"
