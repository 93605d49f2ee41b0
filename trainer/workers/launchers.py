"""Detection of the launcher that started this process, from its environment variables."""

import os

from bertdata.errors import SettingsError
from trainer.workers.job_launchers import JobPlace, find_place, find_place_in_job

VARIABLES = {
    "horovod": ("HOROVOD_RANK", "HOROVOD_SIZE"),
    "torch_distributed": ("RANK", "WORLD_SIZE"),
    "poprun": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "POPDIST_NUM_TOTAL_REPLICAS"),
}
"""Environment variables that the launcher of each collective sets: rank, number of workers, then others. The
collectives are in order of precedence.
"""

LAUNCHER_OF_WORKER = "BERTDATA_LAUNCHED"
"""Environment variable of --dist workers: the launcher's process id and the folder that they share."""

_JOB_RANKS = ("OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
"""Rank variables that mpirun, mpiexec and srun set."""


def find_launcher() -> str:
    """Return the name of the collective that suits the launcher of this process, "single" without a launcher.

    Workers of mpirun and srun use torch.distributed.
    """
    started = (name for name, variables in VARIABLES.items() if all(map(os.environ.get, variables)))
    return next(started, "torch_distributed" if _find_place() else "single")


def find_rank() -> tuple[int, int]:
    """Return (rank, number of workers) as the launcher has set them, or (0, 1) without a launcher."""
    variables = VARIABLES.get(find_launcher())
    if variables and os.environ.get(variables[0]):
        return read_number(variables[0]), read_number(variables[1])
    place = _find_place()
    return (place.rank, place.size) if place else (0, 1)


def find_local_rank() -> int:
    """Return this worker's number on its machine as the launcher has set it, or 0 without a launcher."""
    names = ("HOROVOD_LOCAL_RANK", "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK")
    given = next((name for name in names if os.environ.get(name)), None)
    if given is not None:
        return read_number(given)
    place = _find_place()
    return place.local_rank if place else 0


def read_number(variable: str) -> int:
    """Return the number in a launcher's environment variable.

    Raises SettingsError if the variable is not set or has no number.
    """
    given = os.environ.get(variable, "")
    if not given:
        raise SettingsError(f"{variable} is not set; start by a launcher, or set it for each worker")
    if not (given.isascii() and given.isdecimal()):
        raise SettingsError(f"{variable} is {given!r}, expected a number; unset it, or start by a launcher")
    return int(given)


def is_started_here() -> bool:
    """Return True in a --dist worker. Its launcher has already printed what there is to say."""
    return LAUNCHER_OF_WORKER in os.environ


def is_launched() -> bool:
    """Return True if a launcher started this process: --dist, torchrun, horovodrun, mpirun or srun."""
    variables = (LAUNCHER_OF_WORKER, "TORCHELASTIC_RUN_ID", "HOROVOD_RANK")
    return any(os.environ.get(name) for name in variables) or find_place_in_job() is not None


def is_in_job() -> bool:
    """Return True if one of the variables of mpirun, mpiexec or srun is set."""
    return any(name in os.environ for name in _JOB_RANKS)


def _find_place() -> JobPlace | None:
    """Return this worker's place if mpirun or srun started several workers, otherwise None."""
    return find_place() if is_in_job() else None
