"""The host's own processor."""

import platform
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import torch

from trainer.devices import Device
from trainer.devices.loss_scale import LossScale

if TYPE_CHECKING:
    from trainer.batches import Batch

HALVES = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Cpu(Device):
    """What every device does that has no better way."""

    name = "cpu"
    process_group = "gloo"
    bucket_mb = 25
    fixed_shapes = False

    def __init__(self, local_rank: int = 0) -> None:
        self.torch_device = torch.device("cpu")

    def seed(self, seed: int) -> None:
        torch.manual_seed(seed)  # every accelerator's generators too

    def autocast(self, precision: str) -> AbstractContextManager[object]:
        if precision == "fp32":
            return nullcontext()
        return torch.autocast(self.torch_device.type, HALVES[precision])

    def place(self, module: torch.nn.Module) -> torch.nn.Module:
        return module.to(self.torch_device)

    def move(self, batch: "Batch") -> "Batch":
        return batch

    def scaler(
        self, precision: str, *, initial: float = 2.0**16, floor: float = 1.0, ceiling: float = 2.0**24
    ) -> LossScale:
        if precision == "fp16":
            return LossScale(initial=initial, floor=floor, ceiling=ceiling)
        return LossScale()

    def to_host(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().cpu()

    def describe(self) -> str:
        return f"cpu: {platform.machine()}, {torch.get_num_threads()} threads"
