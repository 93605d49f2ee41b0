"""Detection of the launcher that started this process, from its environment variables."""

import os

from trainer.extensions.launchers.job_launchers import find_place

EXAMPLES = """\
  python -m trainer pretrain --config tiny --train-data shards/phase1 --output-dir run
  horovodrun -np 2 python -m trainer pretrain --config tiny --train-data shards/phase1 --output-dir run
  torchrun --nproc-per-node 2 -m trainer pretrain --config tiny --train-data shards/phase1 --output-dir run
"""
"""A first run, started in each way."""

VARIABLES = {
    "horovod": ("HOROVOD_RANK", "HOROVOD_SIZE"),
    "torch_distributed": ("RANK", "WORLD_SIZE"),
    "poprun": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "POPDIST_NUM_TOTAL_REPLICAS"),
}
"""The variables that a collective's launcher sets, rank and size first; in order of precedence."""

LAUNCHERS = {"horovod": "horovodrun", "torch_distributed": "torchrun", "poprun": "poprun"}
"""The launcher of each collective."""


def find_launcher() -> str:
    """The collective of the launcher that started this process; single without one.

    Workers of mpirun and srun join by torch.distributed.
    """
    started = (name for name, variables in VARIABLES.items() if all(one in os.environ for one in variables))
    return next(started, "torch_distributed" if find_place() else "single")


def find_rank() -> tuple[int, int]:
    """This worker's rank and the number of workers, as the launcher set them; (0, 1) without one."""
    variables = VARIABLES.get(find_launcher())
    if variables and variables[0] in os.environ:
        return int(os.environ[variables[0]]), int(os.environ[variables[1]])
    place = find_place()
    return (place.rank, place.size) if place else (0, 1)


def find_local_rank() -> int:
    """This worker's number on its machine, as the launcher set it; 0 without one."""
    names = ("HOROVOD_LOCAL_RANK", "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK")
    given = next((os.environ[name] for name in names if os.environ.get(name)), None)
    if given is not None:
        return int(given)
    place = find_place()
    return place.local_rank if place else 0
