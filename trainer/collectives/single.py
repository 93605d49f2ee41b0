"""The collective of a single worker."""

from typing import Any

from trainer.collectives.collective import Collective
from trainer.collectives.stopping import StopAgreement
from trainer.devices.device import Device


class Single(Collective):
    """A group of one: values are returned as they are, all other calls do nothing."""

    name = "single"
    rank, size, local_rank = 0, 1, 0

    def __init__(self, device: Device) -> None:
        """The device is not used."""
        self.stopping = StopAgreement()

    def broadcast_object(self, value: Any) -> Any:
        return value

    def sum_numbers(self, numbers: list[float]) -> list[float]:
        return numbers

    def gather(self, value: Any) -> list[Any]:
        return [value]
