"""One worker: its own mean, its own sum."""

from typing import Any

from trainer.collectives import Collective
from trainer.devices import Device


class Single(Collective):
    """No other worker: what asks for no answer, as the protocol has it, does nothing."""

    name = "single"
    rank, size, local_rank = 0, 1, 0

    def __init__(self, device: Device) -> None:
        """The device needs nothing."""

    def broadcast_object(self, value: Any) -> Any:
        return value

    def sum_numbers(self, numbers: list[float]) -> list[float]:
        return numbers

    def gather(self, value: Any) -> list[Any]:
        return [value]
