"""Assertions that a device follows the device protocol, and that the doctor command can examine it."""

from trainer.devices.choice import examine_device
from trainer.plugins import find

PROTOCOL = [
    "seed",
    "autocast",
    "place",
    "move",
    "after_backward",
    "to_host",
    "release",
    "describe",
]
FACTS = ["name", "process_group", "bucket_mb", "needs_rows"]
OWN = ("cpu", "cuda")
"""The devices of the core."""


def assert_protocol(name: str) -> None:
    kind = find("device", name)
    assert all(hasattr(kind, member) for member in PROTOCOL + FACTS)
    assert kind.name == name


def assert_examined(name: str) -> None:
    """Assert that the doctor command reports, in one line, the device, or a remedy if it is missing."""
    finding = examine_device(name)
    assert finding.name == name
    assert finding.found
    assert finding.there or finding.missing
    assert "\n" not in finding.found + finding.missing
