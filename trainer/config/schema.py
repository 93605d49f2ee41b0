"""The schema of each key by name, made of the sections' declarations."""

from functools import cache
from typing import Any

from bertdata.config.declared import schema_of
from trainer.config.settings import DEVICE_OPTIONS, DEVICE_SECTIONS, SECTIONS


@cache
def properties() -> dict[str, dict[str, Any]]:
    """The schema of each key."""
    own = {
        name: {"section": section, **item}
        for section, kind in SECTIONS.items()
        for name, item in schema_of(kind).items()
    }
    options = {
        "description": "keys of other trainers that have an effect on some devices only",
        "default": {},
        "type": "object",
        "additionalProperties": False,
        "properties": device_option_properties(),
    }
    return own | {DEVICE_OPTIONS: options}


@cache
def device_option_properties() -> dict[str, dict[str, Any]]:
    """The schema of each key that has an effect on some devices only."""
    found: dict[str, dict[str, Any]] = {}
    for device, kind in DEVICE_SECTIONS.items():
        for name, item in schema_of(kind).items():
            devices = found[name]["devices"] if name in found else []
            found[name] = {**item, "devices": [*devices, device]}
    return found


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
    return list(schema_of((SECTIONS | DEVICE_SECTIONS)[section]))
