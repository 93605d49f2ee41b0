"""What a processor must offer the trainer: nothing that differs between processors lies elsewhere."""

from contextlib import AbstractContextManager
from importlib import import_module

import torch

from bertdata.errors import SettingsError
from trainer.batches import Batch
from trainer.collectives import find_local_rank
from trainer.devices.loss_scale import LossScale

CLASSES = {"cpu": "Cpu", "cuda": "Cuda"}
"""The class of each device, in the module of that device's name."""


class Device:
    """One processor, and how the trainer talks to it; here as do those that have no better way.

    process_group: what torch.distributed carries its tensors with; bucket_mb: how much to reduce at a time;
    fixed_shapes: batches and masked slots keep their padded shape (graphs, compilers).
    """

    name: str
    process_group: str
    bucket_mb = 100
    fixed_shapes = False

    def __init__(self, local_rank: int) -> None:
        """local_rank: which of the machine's devices; SettingsError where it is not there."""
        self.torch_device = torch.device(self.name)

    def seed(self, seed: int) -> None:
        """Seed every random generator that the model draws from."""
        torch.manual_seed(seed)  # every accelerator's generators too

    def autocast(self, precision: str) -> AbstractContextManager[object]:
        """Where the forward pass runs: matrix products in ``precision``, "fp32", "bf16" or "fp16"."""
        half = torch.float16 if precision == "fp16" else torch.bfloat16
        return torch.autocast(self.torch_device.type, half, enabled=precision != "fp32")

    def place(self, module: torch.nn.Module) -> torch.nn.Module:
        """The module on the device, compiled if need be; tied weights are tied there too."""
        return module.to(self.torch_device)

    def move(self, batch: Batch) -> Batch:
        """The batch on the device; may not have arrived yet."""
        return batch

    def scaler(self, precision: str, *, initial: float, floor: float, ceiling: float) -> LossScale:
        """What keeps small gradients of ``precision`` from vanishing; the bounds are for fp16."""
        return LossScale(initial, floor, ceiling) if precision == "fp16" else LossScale()

    def after_backward(self) -> None:
        """To be called after each backward pass."""

    def after_step(self) -> None:
        """To be called after each step of the optimiser."""

    def to_host(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor in the host's memory, without its history."""
        return tensor.detach().cpu()

    def describe(self) -> str:
        """One line about the hardware and how it is used."""
        return self.name


def find_device(name: str) -> Device:
    """The device of that name, of several on a machine the one of this worker's local rank.

    SettingsError where it is not there.
    """
    if name not in CLASSES:
        raise SettingsError(f"device {name!r}: no such device; known are {', '.join(CLASSES)}")
    device: Device = getattr(import_module(f"trainer.devices.{name}"), CLASSES[name])(find_local_rank())
    return device
