"""Description of the commands ``bertdata like`` and ``python -m trainer like``.

They run the command lines of other programs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Rewriting = Callable[[Sequence[str], str], tuple[list[str], str]]
"""Function that rearranges the words of another program's command line before they are parsed.

It receives the words and the program's version, and returns both.
"""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Door:
    """A ``like`` command, which runs the command lines of other programs.

    command: how the user types it.
    ours: our program, whose flags may follow after ``--``.
    folder: directory of the programs' files, ``VENDOR/PROGRAM.toml``.
    keys: function that returns the JSON Schema of each key of our configuration.
    printing: what --print-config does, for the help.
    elsewhere: the command that knows other programs than this one, for error messages.
    rewritings: functions that rearrange the words of a command line before they are parsed, by program name.
    """

    command: str
    ours: str
    folder: Path
    keys: Callable[[], Mapping[str, Mapping[str, Any]]]
    printing: str
    elsewhere: str = ""
    rewritings: Mapping[str, Rewriting] = field(default_factory=dict)
