"""The keys of the configuration: their sections, their schemas, and the names that a person may give.

Sections that a plain run has no use for are imported where one of their keys is given. Else their keys
are known from ``schemas/trainer.json``, which ``python -m tools.program_pages`` makes of the declarations.
"""

from functools import cache
from typing import Any

from bertdata.config.declared import schema_of
from bertdata.config.value_check import read_value, types_of
from schemas import load_schema
from trainer.config.data import DataSection
from trainer.config.model import MODEL_SECTION
from trainer.config.run import ReportsSection, RunSection
from trainer.config.schedule import ScheduleSection
from trainer.config.section import Section
from trainer.config.update import UpdateSection
from trainer.registry import find

SECTIONS = (
    *("run", "data", "masking", "model", "modernbert", "update"),
    *("split", "schedule", "recipe", "reports", "finetuning"),
)
"""The sections, in the order of their keys."""

DEVICES = ("cuda", "hpu", "ipu", "xla")
"""The sections of keys that have an effect on some devices only."""

DEVICE_OPTIONS = "device_options"
"""The key that holds, in JSON, the keys of those sections that are given."""

CORE: dict[str, type[Section]] = {
    "run": RunSection,
    "data": DataSection,
    "model": MODEL_SECTION,
    "update": UpdateSection,
    "schedule": ScheduleSection,
    "reports": ReportsSection,
}
"""The sections that every run has a use for."""


def find_section(name: str) -> type[Section]:
    """The declaration of a section's keys, imported now."""
    kind: type[Section] = CORE.get(name) or find("keys", name)
    return kind


@cache
def properties() -> dict[str, dict[str, Any]]:
    """The schema of each key, in the order of the sections."""
    published = load_schema("trainer")["properties"]
    found: dict[str, dict[str, Any]] = {}
    for section in SECTIONS:
        if section in CORE:
            found |= {name: {"section": section, **item} for name, item in schema_of(CORE[section]).items()}
        else:
            found |= {name: item for name, item in published.items() if item.get("section") == section}
    return found | {DEVICE_OPTIONS: published[DEVICE_OPTIONS]}


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


def read_word(name: str, word: str) -> Any:
    """The value of a flag's word. SettingsError where its type is another. Texts have commas between them."""
    item = known_names()[name]
    kinds = types_of(item)
    if item.get("items") == {"type": "string"}:
        if not word.lstrip().startswith("["):
            return word.split(",")
        return read_value(word, ["array"], "a list of texts")
    return read_value(word, kinds, flag(name))
