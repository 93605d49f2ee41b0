"""Workers started by mpirun or srun: their environment variables are translated to those of
torch.distributed.

Sources: the manuals of Open MPI, MPICH and Intel MPI (hydra), MVAPICH, HPE's PALS, and Slurm's srun.
"""

import os
import re
from dataclasses import dataclass
from hashlib import md5

from bertdata.errors import SettingsError

_FIRST_PORT, _PORTS = 20000, 10000  # ports below those that operating systems give to clients
_NO_STEP = 0xFFFFFFF0
"""Number from which on Slurm's step numbers stand for batch scripts and interactive shells instead of steps
that srun started.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobLauncher:
    """The environment variables that a launcher sets for its workers.

    Some fields have several names of variables. The first of them that is set counts.
    jobs: variables that together identify the job.
    needs: a further variable that must be set, or None.
    """

    name: str
    rank: str
    size: tuple[str, ...]
    local_rank: str
    local_size: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    needs: str | None = None


def _make_mpirun(prefix: str, *jobs: str) -> JobLauncher:
    """Return the variables of an mpirun, all of which begin with ``prefix``.

    jobs: variables that together identify the job.
    """
    return JobLauncher(
        name="mpirun",
        rank=f"{prefix}_RANK",
        size=(f"{prefix}_SIZE",),
        local_rank=f"{prefix}_LOCAL_RANK",
        local_size=(f"{prefix}_LOCAL_SIZE",),
        jobs=jobs,
    )


JOB_LAUNCHERS = (
    _make_mpirun("OMPI_COMM_WORLD", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"),
    _make_mpirun("MV2_COMM_WORLD", "MPIRUN_ID"),
    JobLauncher(
        name="mpirun",
        rank="PMI_RANK",
        size=("PMI_SIZE",),
        local_rank="MPI_LOCALRANKID",
        local_size=("MPI_LOCALNRANKS",),
        jobs=("PMI_JOBID", "PMI_PORT"),
    ),
    JobLauncher(
        name="mpiexec",
        rank="PMI_RANK",
        size=("PMI_SIZE",),
        local_rank="PALS_LOCAL_RANKID",
        local_size=("PALS_LOCAL_SIZE",),
        jobs=("PALS_APID",),
    ),
    JobLauncher(
        name="srun",
        rank="SLURM_PROCID",
        size=("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"),
        local_rank="SLURM_LOCALID",
        nodes=("SLURM_STEP_NUM_NODES", "SLURM_NNODES"),
        jobs=("SLURM_JOB_ID", "SLURM_STEP_ID"),
        needs="SLURM_STEP_ID",
    ),
)
"""The known launchers, in order of precedence. On Slurm, mpirun starts its workers by srun, so mpirun comes
before srun.
"""

_OTHERS = ("PMIX_RANK", "PMI_RANK")
_NODE_LISTS = ("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST")


@dataclass(frozen=True, slots=True)
class JobPlace:
    """A worker's place in its job: its rank, the number of workers, and its rank among the workers of its
    machine.
    """

    launcher: JobLauncher
    rank: int
    size: int
    local_rank: int


def find_place() -> JobPlace | None:
    """Return this worker's place in its job if mpirun or srun started several processes, otherwise None."""
    place = find_place_in_job()
    return place if place and place.size > 1 else None


def find_place_in_job() -> JobPlace | None:
    """Return this process's place in its job if mpirun or srun started it, otherwise None.

    Unlike ``find_place``, this also counts a job with a single process.
    """
    for launcher in JOB_LAUNCHERS:
        found = [
            _find_first_number(launcher.rank),
            _find_first_number(*launcher.size),
            _find_first_number(launcher.local_rank),
        ]
        if None in found or (
            launcher.needs and int(_find_first_number(launcher.needs) or _NO_STEP) >= _NO_STEP
        ):
            continue
        rank, size, local_rank = (int(value or 0) for value in found)
        return JobPlace(launcher, rank, size, local_rank)
    return None


def join_environment() -> None:
    """Set torch.distributed's environment variables from those of mpirun or srun, if one of them started this
    worker.

    Variables that are already set are not changed. Raises SettingsError if the address of rank 0 cannot be
    found.
    """
    place = find_place()
    if place is None:
        return
    name = place.launcher.name
    os.environ |= {
        "RANK": str(place.rank),
        "WORLD_SIZE": str(place.size),
        "LOCAL_RANK": str(place.local_rank),
    }
    if not os.environ.get("MASTER_ADDR"):
        address = _find_address(place)
        if address is None:
            remedy = f"set it: {name} -x MASTER_ADDR=HOST ..." if name == "mpirun" else "export it"
            raise SettingsError(
                f"{name}: the workers are on several machines and MASTER_ADDR, rank 0's machine, is "
                f"not set; {remedy}"
            )
        os.environ["MASTER_ADDR"] = address
    # All workers of a job must choose the same port, and two jobs on a machine should choose different ports.
    # So the port is computed from the variables that identify the job.
    job = [os.environ[variable] for variable in place.launcher.jobs if variable in os.environ]
    number = int(md5("/".join(job).encode(), usedforsecurity=False).hexdigest(), 16)
    if not os.environ.get("MASTER_PORT"):
        os.environ["MASTER_PORT"] = str(_FIRST_PORT + number % _PORTS)


def refuse_unknown_launchers() -> None:
    """Raise SettingsError under a launcher that sets a rank, but neither the number of workers nor a local
    rank.
    """
    if any(_find_first_number(*launcher.size) == "1" for launcher in JOB_LAUNCHERS):
        return
    if variable := next((name for name in _OTHERS if name in os.environ), None):
        remedy = "start by torchrun, set RANK, WORLD_SIZE, LOCAL_RANK and MASTER_ADDR, or train alone"
        raise SettingsError(
            f"a launcher set {variable}, and nothing tells the number of workers, or a worker's "
            f"number on its machine: {remedy} with --collective single"
        )


def _find_first_number(*names: str) -> str | None:
    """Return the value of the first of these environment variables that is set to a number, or None."""
    return next((os.environ[name] for name in names if os.environ.get(name, "").isdecimal()), None)


def _find_address(place: JobPlace) -> str | None:
    """Return the address of rank 0, or None if it is not known.

    It is this machine if all workers run here, otherwise the first of Slurm's nodes.
    """
    launcher = place.launcher
    local_size = _find_first_number(*launcher.local_size)
    if local_size == str(place.size) or _find_first_number(*launcher.nodes) == "1":
        return "127.0.0.1"
    if launcher.nodes:
        return next((find_first_host(os.environ[name]) for name in _NODE_LISTS if name in os.environ), None)
    return None


def find_first_host(nodes: str) -> str:
    """Return the first host of a list that is written as Slurm does.

    For example, the first host of node[003-005,9],other is node003.
    """
    first = re.match(r"(?:[^,\[]|\[[^\]]*\])*", nodes)
    return re.sub(r"\[(\w+)[^\]]*\]", r"\1", first.group() if first else nodes)
