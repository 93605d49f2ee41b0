"""The keys of the configuration: their sections, their schemas, and the names that a person may give.

The schemas are read from ``schemas/trainer.json``, which ``python -m tools.program_pages`` makes of the
sections. Sections that a plain run has no use for are imported where one of their keys is given.
"""

from argparse import SUPPRESS
from functools import cache, partial
from typing import Any

from bertdata.config.value_check import read_value, types_of
from schemas import load_schema
from trainer.registry import CORE

DEVICES = ("cuda", "hpu", "ipu", "xla")
"""The sections of keys that have an effect on some devices only."""

SECTIONS = tuple(name for name in CORE["keys"] if name not in DEVICES)
"""The other sections, in the order of their keys."""

DEVICE_OPTIONS = "device_options"
"""The key that holds, in JSON, the keys of devices' sections that are given."""


def properties() -> dict[str, dict[str, Any]]:
    """The schema of each key, in the order of the sections."""
    published: dict[str, dict[str, Any]] = load_schema("trainer")["properties"]
    return published


def device_properties() -> dict[str, dict[str, Any]]:
    """The schema of each key that has an effect on some devices only."""
    found: dict[str, dict[str, Any]] = properties()[DEVICE_OPTIONS]["properties"]
    return found


@cache
def known_names() -> dict[str, dict[str, Any]]:
    """The schema of every name that a file or a command line may contain."""
    own = {name: item for name, item in properties().items() if name != DEVICE_OPTIONS}
    own |= {name: own[key] for name, (key, _) in phase_names().items()}
    own |= {name: own[key] for name, key in older_names().items()}
    return own | device_properties()


@cache
def older_names() -> dict[str, str]:
    """The key of each name that this trainer used before."""
    return {name: key for key, item in properties().items() for name in item.get("older_names", ())}


@cache
def phase_names() -> dict[str, tuple[str, int]]:
    """The names that give a key's value for one phase: the key, and the phase counted from 0."""
    keys = [name for name, item in properties().items() if "phases" in item]
    return {f"{key}_phase{phase + 1}": (key, phase) for key in keys for phase in range(2)}


def section_keys(section: str) -> list[str]:
    """The keys of a section. A device's section has the keys that have an effect on it."""
    own = [name for name, item in properties().items() if item.get("section") == section]
    return own or [name for name, item in device_properties().items() if section in item["devices"]]


def flag(name: str) -> str:
    """The flag of a key or of another name."""
    return f"--{name.replace('_', '-')}"


def add_flag(parser: Any, name: str, help: str = SUPPRESS) -> None:
    """Add the flag of a name. Its value keeps the name as its destination."""
    item = known_names()[name]
    more: dict[str, Any] = {}
    if "boolean" in types_of(item):
        more = {"nargs": "?", "const": True}
    elif "phases" in item:
        more = {"action": "append"}
    elif "by_phase" in item:
        more = {"nargs": "+"}
    more |= {"type": partial(read_word, name), "metavar": "X", "default": SUPPRESS, "help": help}
    parser.add_argument(flag(name), dest=name, **more)


def united(found: dict[str, Any]) -> dict[str, Any]:
    """The values by name, where a repeated flag unites datasets, and one value of a list stands alone."""
    for name, value in found.items():
        if "phases" in known_names().get(name, {}):
            found[name] = "+".join(filter(None, value)) or None
        elif isinstance(value, list) and "by_phase" in known_names()[name] and len(value) == 1:
            found[name] = value[0]
    return found


def read_word(name: str, word: str) -> Any:
    """The value of a flag's word. SettingsError where its type is another. Texts have commas between them."""
    item = known_names()[name]
    is_list = item.get("items") == {"type": "string"}
    if is_list and not word.lstrip().startswith("["):
        return word.split(",")
    return read_value(word, types_of(item), "a list of texts" if is_list else flag(name))
