"""A device, launcher or package as found on this machine."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Availability:
    """A device, launcher or package as found on this machine, and the remedy where something is missing.

    count: of devices, each for a worker of its own.
    """

    name: str
    there: bool
    found: str
    missing: str = ""
    count: int = 1
