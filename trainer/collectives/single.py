"""One worker: its own mean, its own sum."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch

from trainer.collectives import Collective

if TYPE_CHECKING:
    from trainer.devices import Device


class Single(Collective):
    """No other worker."""

    name = "single"
    rank = 0
    size = 1
    local_rank = 0

    def __init__(self, device: "Device", patience: float) -> None:
        pass

    def broadcast(self, tensors: Iterable[torch.Tensor]) -> None:
        pass

    def broadcast_object(self, value: Any) -> Any:
        return value

    def average(self, tensors: Iterable[torch.Tensor], dtype: torch.dtype | None = None) -> None:
        pass

    def sum_numbers(self, numbers: list[float]) -> list[float]:
        return list(numbers)

    def gather(self, value: Any) -> list[Any]:
        return [value]

    def barrier(self) -> None:
        pass

    def close(self) -> None:
        pass
