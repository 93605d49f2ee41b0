"""Description of a ``like`` command, which runs the command lines of other programs.

There are two such commands: ``bertdata like`` and ``python -m trainer like``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Rewriting = Callable[[Sequence[str], str], tuple[list[str], str]]
"""Type of a function that rearranges the words of another program's command line before they are parsed.

Its arguments are the words and the program's version. It returns both.
"""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LikeCommand:
    """A ``like`` command, which runs the command lines of other programs.

    command: the command as the user types it.
    ours: the program bertdata or trainer, whose flags may follow after ``--``.
    folder: directory with the files that describe other programs, ``VENDOR/PROGRAM.toml``.
    keys: function that returns the JSON Schema of each configuration key that a flag can set.
    printing: text for the help that says what --print-config does.
    elsewhere: the other ``like`` command, which an error message suggests for programs that only it knows.
    rewritings: functions that rearrange the words of a command line before they are parsed, by program name.
    """

    command: str
    ours: str
    folder: Path
    keys: Callable[[], Mapping[str, Mapping[str, Any]]]
    printing: str
    elsewhere: str = ""
    rewritings: Mapping[str, Rewriting] = field(default_factory=dict)
