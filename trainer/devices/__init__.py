"""What a processor must offer the trainer: nothing that differs between processors lies elsewhere."""

from contextlib import AbstractContextManager
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from bertdata.errors import SettingsError

if TYPE_CHECKING:
    import torch

    from trainer.batches import Batch
    from trainer.devices.loss_scale import LossScale

CLASSES = {"cpu": "Cpu", "cuda": "Cuda"}
"""The class of each device, in the module of that device's name."""


class Device(Protocol):
    """One processor, and how the trainer talks to it.

    process_group: what torch.distributed carries its tensors with; bucket_mb: how much to reduce at a time;
    fixed_shapes: batches and masked slots keep their padded shape (graphs, compilers).
    """

    name: str
    torch_device: "torch.device"
    process_group: str
    bucket_mb: int
    fixed_shapes: bool

    def seed(self, seed: int) -> None:
        """Seed every random generator that the model draws from."""

    def autocast(self, precision: str) -> AbstractContextManager[object]:
        """Where the forward pass runs: matrix products in ``precision``, "fp32", "bf16" or "fp16"."""

    def place(self, module: "torch.nn.Module") -> "torch.nn.Module":
        """The module on the device, compiled if need be; tied weights are tied there too."""

    def move(self, batch: "Batch") -> "Batch":
        """The batch on the device; may not have arrived yet."""

    def scaler(
        self, precision: str, *, initial: float = 2.0**16, floor: float = 1.0, ceiling: float = 2.0**24
    ) -> "LossScale":
        """What keeps small gradients of ``precision`` from vanishing; the bounds are for fp16."""

    def after_backward(self) -> None:
        """To be called after each backward pass."""

    def after_step(self) -> None:
        """To be called after each step of the optimiser."""

    def to_host(self, tensor: "torch.Tensor") -> "torch.Tensor":
        """The tensor in the host's memory, without its history."""

    def describe(self) -> str:
        """One line about the hardware and how it is used."""


def find_device(name: str, local_rank: int | None = None) -> Device:
    """The device of that name; SettingsError where it is not there.

    local_rank: which of the machine's devices; if None, as the launcher says.
    """
    if name not in CLASSES:
        raise SettingsError(f"device {name!r}: no such device; known are {', '.join(CLASSES)}")
    if local_rank is None:
        from trainer.collectives import find_local_rank

        local_rank = find_local_rank()
    device: Device = getattr(import_module(f"trainer.devices.{name}"), CLASSES[name])(local_rank)
    return device
