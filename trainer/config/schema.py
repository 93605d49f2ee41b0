"""The trainer's schema: ``schemas/trainer.json``, where type, range and meaning of each key are declared."""

from functools import cache
from typing import Any

from schemas import load_schema

DEVICE_OPTIONS = "device_options"
"""The key that holds, in JSON, the keys that have an effect on some devices only."""


@cache
def properties() -> dict[str, dict[str, Any]]:
    """The schema of each key."""
    return dict(load_schema("trainer")["properties"])


@cache
def device_option_properties() -> dict[str, dict[str, Any]]:
    """The schema of each key that has an effect on some devices only."""
    return dict(properties()[DEVICE_OPTIONS]["properties"])


@cache
def older_names() -> dict[str, str]:
    """The key of each name that this trainer used before."""
    return {name: key for key, item in properties().items() for name in item.get("older_names", ())}


@cache
def known_names() -> dict[str, dict[str, Any]]:
    """The schema of every name that a file or a command line may contain."""
    own = {name: item for name, item in properties().items() if name != DEVICE_OPTIONS}
    own |= {name: own[key] for name, (key, _) in phase_names().items()}
    own |= {name: own[key] for name, key in older_names().items()}
    return own | device_option_properties()


def phase_names() -> dict[str, tuple[str, int]]:
    """The names that give a key's value for one phase: the key, and the phase counted from 0."""
    keys = [name for name, item in properties().items() if "phases" in item]
    return {f"{key}_phase{phase + 1}": (key, phase) for key in keys for phase in range(2)}


def section_keys(section: str) -> list[str]:
    """The keys of a section; those of a device's section are the keys that have an effect on it."""
    own = [name for name, item in properties().items() if item.get("section") == section]
    return own + [name for name, item in device_option_properties().items() if section in item["devices"]]


def usual(optimiser: str, kind: str) -> str:
    """The "schedule" or "clipping" that the optimiser's authors use with it."""
    return str(properties()["optimiser"]["habits"][optimiser][kind])
