"""The base of the configuration's sections."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from bertdata.config.declared import schema_of, setting
from bertdata.config.value_check import check_values
from bertdata.errors import SettingsError
from trainer.plugins import names

shown = partial(setting, common=True)
"""A setting that the short help shows."""


def named(
    kind: str, default: str | None, help: str, *others: str, without: Sequence[str] = (), **marks: Any
) -> Any:
    """Return a setting whose value is a name of the plugins' table, or ``package.module:NAME`` of one's own.

    kind: of the table. others: names beside those of the table, which come first. without: names of the
    table that no user types. marks: as of ``setting``.
    """
    known = [*others, *(name for name in names(kind) if name not in without)]
    pattern = f"^({'|'.join(map(re.escape, known))}|[^:]+:[^:]+)$"
    return setting(default, help, keywords={"examples": known, "pattern": pattern}, **marks)


@dataclass(frozen=True, kw_only=True)
class Section:
    """Keys of one subject, checked against their schema. A key's description says what None means.

    Each key is declared once, by ``setting``, or by ``shown``. Its marks: ``by_phase``
    keys may have two values, ``phases`` keys name data of each phase (``--train-data-phase1``),
    ``older_names`` are names that this trainer used before, ``everywhere``: of the keys of some devices, one
    that has an effect on all.
    """

    def __post_init__(self) -> None:
        """SettingsError for the first value of a wrong type or out of its range."""
        check_values(self.values(), schema_of(type(self)))

    def values(self) -> dict[str, Any]:
        """The values by key."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def idle(self) -> list[str]:
        """The keys that have no effect because of the value of another."""
        return []


def check(holds: bool, message: str) -> None:
    """SettingsError with the message unless the condition holds."""
    if not holds:
        raise SettingsError(message)
