"""What workers that train together say to one another, whatever launched them.

Single worker, torch.distributed (torchrun, poprun; gloo, NCCL, HCCL as the device has it) or Horovod
(horovodrun).
Every call but close raises WorkerLost, naming ranks, soon after another worker died or went silent.
"""

import os
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from bertdata.errors import SettingsError

if TYPE_CHECKING:
    import torch

    from trainer.devices import Device

CLASSES = {
    "horovod": "Horovod",
    "torch_distributed": "TorchDistributed",
    "poprun": "Poprun",
    "single": "Single",
}
"""The class of each collective, in the module of that name."""

EXAMPLES = """\
  python -m trainer pretrain --config tiny --train-data shards/phase1 --output-dir run
  horovodrun -np 2 python -m trainer pretrain --config tiny --train-data shards/phase1 --output-dir run
  torchrun --nproc-per-node 2 -m trainer pretrain --config tiny --train-data shards/phase1 --output-dir run
"""
"""A first run, started in each way."""

_SIGNS = {
    "horovod": ("HOROVOD_RANK", "HOROVOD_SIZE"),
    "torch_distributed": ("RANK", "WORLD_SIZE"),
    "poprun": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "POPDIST_NUM_TOTAL_REPLICAS"),
}
"""The environment variables that tell by what the workers were launched; the first that fits."""

_LAUNCHERS = {"horovod": "horovodrun", "torch_distributed": "torchrun", "poprun": "poprun"}


class Collective(Protocol):
    """The workers, seen from one of them: ``rank`` of ``size``, ``local_rank`` on its machine.

    Each call must be made by all workers, in the same order, with tensors of the same shapes.
    """

    name: str
    rank: int
    size: int
    local_rank: int

    def broadcast(self, tensors: "Iterable[torch.Tensor]") -> None:
        """Overwrite the tensors by those of rank 0, bit for bit."""

    def broadcast_object(self, value: Any) -> Any:
        """Rank 0's value, one that JSON can say; the others' is ignored."""

    def average(self, tensors: "Iterable[torch.Tensor]", dtype: "torch.dtype | None" = None) -> None:
        """Overwrite the tensors by their means over the workers; dtype: what to add up in."""

    def sum_numbers(self, numbers: list[float]) -> list[float]:
        """The sums over the workers, the same to the bit on each."""

    def gather(self, value: Any) -> list[Any]:
        """Every worker's value, by rank; values that JSON can say."""

    def barrier(self) -> None:
        """Return when every worker has come here."""

    def close(self) -> None:
        """Take leave when all is done; after an error just end."""


def find_collective(name: str | None, device: "Device") -> Collective:
    """The collective of that name; if None, of the launcher that this process shows signs of."""
    name = name or find_launcher()
    if name not in CLASSES:
        raise SettingsError(f"collective {name!r}: no such collective; known are {', '.join(CLASSES)}")
    if missing := [sign for sign in _SIGNS.get(name, ()) if sign not in os.environ]:
        raise SettingsError(f"{name}: {missing[0]} is not set; start under {_LAUNCHERS[name]}")
    if name not in device.collectives:
        remedy = f"start the workers by {_LAUNCHERS[device.collectives[1]]}"
        raise SettingsError(f"{name}: not for device {device.name!r}; {remedy}")
    collective: Collective = getattr(import_module(f"trainer.collectives.{name}"), CLASSES[name])(device)
    return collective


def find_local_rank() -> int:
    """This worker's number on its machine, as the launcher says; 0 without one."""
    names = ("HOROVOD_LOCAL_RANK", "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK")
    return int(next((os.environ[name] for name in names if os.environ.get(name)), 0))


def find_rank() -> tuple[int, int]:
    """This worker's rank and the number of workers, as the launcher says; (0, 1) without one."""
    signs = _SIGNS.get(find_launcher())
    return (int(os.environ[signs[0]]), int(os.environ[signs[1]])) if signs else (0, 1)


def find_launcher() -> str:
    """The collective of the launcher that started this process; single without one."""
    started = (name for name, signs in _SIGNS.items() if all(sign in os.environ for sign in signs))
    return next(started, "single")


def force_weight_sync(
    collective: Collective, parameters: "Iterable[torch.Tensor]", always: bool = False
) -> None:
    """Average the trainable parameters over the workers, always or if FORCE_WEIGHT_SYNC is 1 or true."""
    if always or os.environ.get("FORCE_WEIGHT_SYNC", "").lower() in ("1", "true"):
        collective.average(parameter for parameter in parameters if parameter.requires_grad)
