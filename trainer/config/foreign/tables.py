"""Tables of other programs' flags and keys: one JSON file beside this module for each program.

- ``names``: other names of this trainer's keys, with the same meaning.
- ``translations``: names with another meaning, see ``trainer.config.foreign.translate``.
- ``ignored``: names that are accepted and have no effect on any device, with their types.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bertdata.config.value_check import read_object
from trainer.config.schema import properties


@dataclass(frozen=True, kw_only=True, slots=True)
class ForeignProgram:
    """The table of one program."""

    program: str
    names: Mapping[str, str]
    translations: Mapping[str, dict[str, Any]]
    ignored: Mapping[str, dict[str, Any]]

    def all_names(self) -> list[str]:
        return sorted({*self.names, *self.translations, *self.ignored})


@cache
def programs() -> tuple[ForeignProgram, ...]:
    """The tables of all programs."""
    paths = sorted(Path(__file__).parent.glob("*.json"))
    return tuple(ForeignProgram(**read_object(str(path))) for path in paths)


@cache
def other_names() -> dict[str, str]:
    """The key of each other name: those of all programs, and this trainer's older ones."""
    older = {name: key for key, item in properties().items() for name in item.get("older_names", ())}
    return older | {name: key for program in programs() for name, key in program.names.items()}


@cache
def translations() -> dict[str, dict[str, Any]]:
    """The schema of each name with another meaning, and its translation."""
    return {name: item for program in programs() for name, item in program.translations.items()}


@cache
def ignored_names() -> dict[str, dict[str, Any]]:
    """The schema of each name that is accepted and has no effect."""
    return {name: item for program in programs() for name, item in program.ignored.items()}
