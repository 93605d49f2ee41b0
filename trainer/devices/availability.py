"""The result of a search for a device, launcher or package on this machine."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Availability:
    """A device, launcher or package: whether this machine has it, and the remedy if something is missing.

    there: True if it can be used. found: description for the user, for example versions and card names.
    missing: the remedy, or "". count: number of devices that can each have a worker.
    """

    name: str
    there: bool
    found: str
    missing: str = ""
    count: int = 1
