"""Stand-in for the process group "hccl", which communicates through gloo."""

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch.distributed as dist
from recording import record, spelt

KNOWN = {"all_reduce"}
OTHERS = {"all_gather", "all_to_all", "barrier", "broadcast", "gather", "reduce", "reduce_scatter", "scatter"}
_MPI = {"LOCAL_RANK": "OMPI_COMM_WORLD_LOCAL_RANK", "WORLD_SIZE": "OMPI_COMM_WORLD_SIZE"}
_MPI["RANK"] = "OMPI_COMM_WORLD_RANK"


def initialize_distributed_hpu(
    world_size: int | None = None, rank: int | None = None, local_rank: int | None = None
) -> tuple[int, int, int]:
    """Return world size, rank and local rank, read from the variables of torchrun or mpirun."""
    found = _initialize(world_size, rank, local_rank)
    record(f"initialize_distributed_hpu() of {found[0]} workers")
    return found


def _initialize(*given: int | None) -> tuple[int, int, int]:
    names = ("WORLD_SIZE", "RANK", "LOCAL_RANK")
    if None not in given:
        os.environ.update({name: str(value) for name, value in zip(names, given, strict=True)})
    elif not set(names) <= set(os.environ) and set(_MPI.values()) <= set(os.environ):
        os.environ.update({name: os.environ[theirs] for name, theirs in _MPI.items()})
    size, rank, local_rank = (int(os.environ.get(name, -1)) for name in names)
    return abs(size), rank, local_rank


def _make_group(store: Any, rank: int, size: int, timeout: Any) -> Any:
    return dist.ProcessGroupGloo(store, rank, size, timeout)


def _recorded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function of torch.distributed so that its first argument and its options are recorded.

    For the rendezvous store and the rank, only the names are recorded, since their values differ between
    workers.
    """

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        own = ("store", "rank")
        options = "".join(
            f", {key}" if key in own else f", {key}={spelt(value)}" for key, value in kwargs.items()
        )
        record(f"dist.{function.__name__}({spelt(args[0]) if args else ''}{options})")
        return function(*args, **kwargs)

    return call


_initialize(None, None, None)  # the real one does so too when it is imported
dist.Backend.register_backend("hccl", _make_group, devices=["cpu", "hpu"])
for _name in ("init_process_group", "destroy_process_group", *KNOWN, *OTHERS):
    setattr(dist, _name, _recorded(getattr(dist, _name)))
