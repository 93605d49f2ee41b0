"""A command that runs other programs' command lines: ``bertdata like`` or ``python -m trainer like``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Rewriting = Callable[[Sequence[str], str], tuple[list[str], str]]
"""A function from the words of a command line and its version to those that the program's flags read."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Door:
    """A command that runs other programs' command lines.

    command: as it is typed. ours: the program of ours whose flags may follow behind ``--``. folder: of the
    programs' files, ``VENDOR/PROGRAM.toml``. keys: the JSON Schema of each key of ours.
    printing: what ``--print-config`` does. elsewhere: where other programs are known, for errors.
    rewritings: by name, for the programs whose parser takes words in an order of its own.
    """

    command: str
    ours: str
    folder: Path
    keys: Callable[[], Mapping[str, Mapping[str, Any]]]
    printing: str
    elsewhere: str = ""
    rewritings: Mapping[str, Rewriting] = field(default_factory=dict)
