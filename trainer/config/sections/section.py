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
    """Declare a key whose value is a name in the plug-in table or a user's ``package.module:NAME``.

    kind: name of the table in ``trainer.plugins``.
    others: further allowed names, listed before the table's.
    without: names in the table that a user cannot choose.
    marks: further arguments for ``bertdata``'s function ``setting``, such as common=True.
    """
    known = [*others, *(name for name in list_names(kind) if name not in without)]
    pattern = f"^({'|'.join(map(re.escape, known))}|[^:]+:[^:]+)$"
    return setting(default, help, keywords={"examples": known, "pattern": pattern}, **marks)


@dataclass(frozen=True, kw_only=True)
class Section:
    """The keys of one subject, checked against their JSON Schema when the section is made.

    Each key is declared by ``setting`` or ``declare_common_key``, whose help text says what None means.
    Further marks of a key:
    common: the short help of ``pretrain`` lists it.
    by_phase: it may have two values, for phase 1 and phase 2.
    phases: it names data, and has a flag for each phase (``--train-data-phase1``).
    other_names: further accepted spellings, and names from earlier versions.
    everywhere: the key is listed under some devices, but has an effect on every device.
    """

    def __post_init__(self) -> None:
        """Raise SettingsError for the first value of the wrong type or outside its range."""
        check_values(self.values(), derive_schemas(type(self)))

    def values(self) -> dict[str, Any]:
        """Return all values by key."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def list_idle_keys(self) -> list[str]:
        """Return the section's keys that have no effect because of the value of another key."""
        return []
