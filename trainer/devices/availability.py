"""One line of doctor's report."""

from dataclasses import dataclass

from bertdata.errors import install_extra


@dataclass(frozen=True, slots=True)
class Availability:
    """A device, launcher or package as found on this machine, and the remedy where something is missing."""

    name: str
    there: bool
    found: str
    missing: str = ""
    count: int = 1
    """Devices, each for a worker of its own."""


def without_torch(name: str) -> Availability:
    """The finding for anything that needs torch, where torch is not installed."""
    return Availability(name, False, "torch is not installed", install_extra("train"))
