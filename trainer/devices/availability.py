"""The result of looking for a device, launcher or package on this machine."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Availability:
    """Availability of a device, launcher or package on this machine, and what to install if something is
    missing.

    there: True if it can be used.
    found: description for the user, for example versions and names of cards.
    missing: what the user can do to make it usable, or "" if nothing is missing.
    count: number of devices on this machine. Each of them can have its own worker.
    """

    name: str
    there: bool
    found: str
    missing: str = ""
    count: int = 1
