"""Description of a ``like`` command: ``bertdata like`` or ``python -m trainer like``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Rewriting = Callable[[Sequence[str], str], tuple[list[str], str]]
"""Function that gets the words of a command line and a version, and returns both, rearranged."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Door:
    """A command that runs other programs' command lines.

    command: how the user types it. ours: our program, whose flags may follow after ``--``.
    folder: directory of the programs' files, ``VENDOR/PROGRAM.toml``.
    keys: function that returns the JSON Schema of each key of our configuration.
    printing: what --print-config does, for the help. elsewhere: where other programs are known, for errors.
    rewritings: by program name, for programs whose parser needs the words rearranged first.
    """

    command: str
    ours: str
    folder: Path
    keys: Callable[[], Mapping[str, Mapping[str, Any]]]
    printing: str
    elsewhere: str = ""
    rewritings: Mapping[str, Rewriting] = field(default_factory=dict)
