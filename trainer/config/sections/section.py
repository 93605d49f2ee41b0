"""Base class of the configuration's sections, and helpers to declare their keys."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from bertdata.config.declared import derive_schemas, setting
from bertdata.config.value_check import check_values
from trainer.plugins import list_names

declare_common_key = partial(setting, common=True)
"""Declare a key that the short help of ``pretrain`` lists."""


def declare_plugin_key(
    kind: str, default: str | None, help: str, *others: str, without: Sequence[str] = (), **marks: Any
) -> Any:
    """Declare a key whose value is one of the trainer's names, or a user's ``package.module:NAME``.

    kind: the names are those of this kind in ``trainer.plugins.TABLE``, such as "optimiser".
    default: value of the key if it is not set.
    help: text for the help.
    others: further allowed names, which the help lists first.
    without: names of this kind that a user cannot choose.
    marks: further arguments of ``setting``, such as common=True.
    """
    known = [*others, *(name for name in list_names(kind) if name not in without)]
    pattern = f"^({'|'.join(map(re.escape, known))}|[^:]+:[^:]+)$"
    return setting(default, help, keywords={"examples": known, "pattern": pattern}, **marks)


@dataclass(frozen=True, kw_only=True)
class Section:
    """Base class of the configuration's sections. A section has the keys of one subject.

    The values are checked against the JSON Schemas of the keys when the object is made. Each key is declared
    by ``setting`` or ``declare_common_key``, whose help text says what None means. A declaration may have
    these arguments too:
    common: the short help of ``pretrain`` lists the key.
    by_phase: the key may have two values, for phase 1 and phase 2.
    phases: the key names data, and has a flag for each phase (``--train-data-phase1``).
    other_names: further spellings of the key, and its names in earlier versions.
    everywhere: the help lists the key under some devices, but it has an effect on every device.
    """

    def __post_init__(self) -> None:
        """Raise SettingsError for the first value of the wrong type or outside its range."""
        check_values(self.values(), derive_schemas(type(self)))

    def values(self) -> dict[str, Any]:
        """Return the values of all keys of the section, by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def list_idle_keys(self) -> list[str]:
        """Return the section's keys that have no effect because of the value of another key."""
        return []
