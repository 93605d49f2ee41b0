"""What was found out about a device, launcher or package of this machine."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Availability:
    """A device, launcher or package: whether this machine has it, and the remedy if something is missing.

    there: it can be used. found: what was found, in words. missing: the remedy, or "".
    count: number of devices that can each have a worker.
    """

    name: str
    there: bool
    found: str
    missing: str = ""
    count: int = 1
