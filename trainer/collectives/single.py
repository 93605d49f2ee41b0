"""One worker: its own mean, its own sum."""

from typing import Any

from trainer.collectives import Collective
from trainer.devices import Device


class Single(Collective):
    """No other worker."""

    name = "single"
    rank = 0
    size = 1
    local_rank = 0

    def __init__(self, device: Device, patience: float) -> None:
        """What asks for no answer, as the protocol has it, does nothing."""

    def broadcast_object(self, value: Any) -> Any:
        return value

    def sum_numbers(self, numbers: list[float]) -> list[float]:
        return list(numbers)

    def gather(self, value: Any) -> list[Any]:
        return [value]
