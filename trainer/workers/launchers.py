"""Detection of the launcher that started this process, by its environment variables."""

import os

from bertdata.errors import SettingsError
from trainer.workers.job_launchers import JobPlace, find_place, find_place_in_job

VARIABLES = {
    "horovod": ("HOROVOD_RANK", "HOROVOD_SIZE"),
    "torch_distributed": ("RANK", "WORLD_SIZE"),
    "poprun": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "POPDIST_NUM_TOTAL_REPLICAS"),
}
"""For each collective, the environment variables that its launcher sets: rank, number of workers, then
others. Collectives that come first take precedence.
"""

LAUNCHER_OF_WORKER = "BERTDATA_LAUNCHED"
"""Environment variable of workers that --dist started. It has the launcher's process id and the folder that
they share.
"""

DEFAULT_THREADS = "BERTDATA_DEFAULT_THREADS"
"""Environment variable of workers that --dist started. It has their number of threads, unless the user has
chosen another number with OMP_NUM_THREADS.
"""

_JOB_RANKS = ("OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
"""Environment variables in which mpirun, mpiexec and srun put the rank of a worker."""


def find_launcher() -> str:
    """Return the name of the collective that suits the launcher of this process. "single" if there is no
    launcher.

    Workers of mpirun and srun use torch.distributed.
    """
    started = (name for name, variables in VARIABLES.items() if all(map(os.environ.get, variables)))
    return next(started, "torch_distributed" if _find_place() else "single")


def find_rank() -> tuple[int, int]:
    """Return (rank, number of workers) as the launcher has set them. Without a launcher, return (0, 1)."""
    variables = VARIABLES.get(find_launcher())
    if variables and os.environ.get(variables[0]):
        return read_number(variables[0]), read_number(variables[1])
    place = _find_place()
    return (place.rank, place.size) if place else (0, 1)


def find_local_rank() -> int:
    """Return this worker's rank among the workers of its machine, as the launcher has set it. Without a
    launcher, return 0.
    """
    names = ("HOROVOD_LOCAL_RANK", "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK")
    given = next((name for name in names if os.environ.get(name)), None)
    if given is not None:
        return read_number(given)
    place = _find_place()
    return place.local_rank if place else 0


def read_number(variable: str) -> int:
    """Return the number in an environment variable of a launcher.

    Raises SettingsError if the variable is not set or is not a number.
    """
    given = os.environ.get(variable, "")
    if not given:
        raise SettingsError(f"{variable} is not set; start by a launcher, or set it for each worker")
    if not (given.isascii() and given.isdecimal()):
        raise SettingsError(f"{variable} is {given!r}, expected a number; unset it, or start by a launcher")
    return int(given)


def is_started_here() -> bool:
    """Return True if --dist started this process. Then the launcher has already printed what comes before a
    run.
    """
    return LAUNCHER_OF_WORKER in os.environ


def is_launched() -> bool:
    """Return True if a launcher started this process: --dist, torchrun, horovodrun, mpirun or srun."""
    variables = (LAUNCHER_OF_WORKER, "TORCHELASTIC_RUN_ID", "HOROVOD_RANK")
    return any(os.environ.get(name) for name in variables) or find_place_in_job() is not None


def is_in_job() -> bool:
    """Return True if mpirun, mpiexec or srun has set a rank for this process."""
    return any(name in os.environ for name in _JOB_RANKS)


def _find_place() -> JobPlace | None:
    """Return this worker's place in its job if mpirun or srun started several workers, otherwise None."""
    return find_place() if is_in_job() else None
