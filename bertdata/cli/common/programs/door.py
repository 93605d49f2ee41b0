"""Description of the commands ``bertdata like`` and ``python -m trainer like``, which run other programs'
command lines.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Rewriting = Callable[[Sequence[str], str], tuple[list[str], str]]
"""Function that rearranges the words of a command line. It receives the words and the version and returns
both.
"""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Door:
    """A ``like`` command, which runs the command lines of other programs.

    command: how the user types it. ours: our program, whose flags may follow after ``--``. folder: directory
    of the programs' files, ``VENDOR/PROGRAM.toml``. keys: function that returns the JSON Schema of each key
    of our configuration. printing: what --print-config does, for the help. elsewhere: which command knows
    further programs, for errors. rewritings: functions by program name, for programs whose words must be
    rearranged before they are parsed.
    """

    command: str
    ours: str
    folder: Path
    keys: Callable[[], Mapping[str, Mapping[str, Any]]]
    printing: str
    elsewhere: str = ""
    rewritings: Mapping[str, Rewriting] = field(default_factory=dict)
