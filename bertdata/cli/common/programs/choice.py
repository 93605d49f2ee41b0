"""The programs behind a door: found by name, by a file of one's own, or by a flag that they have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

from bertdata.cli.common.door_words import take_print_config
from bertdata.cli.common.programs.command_line import Given
from bertdata.cli.common.programs.door import Door
from bertdata.cli.common.programs.program import Program
from bertdata.cli.common.programs.program_file import read_program
from bertdata.errors import UsageError

FILE_ENDING = ".toml"


@dataclass(frozen=True, kw_only=True, slots=True)
class DoorLine:
    """A command line behind a door.

    typed: the program as the person named it, with its version. given: the program's values. ours: the words
    behind ``--``. printing: ``--print-config`` was among the words.
    """

    typed: str
    program: Program
    given: Given
    ours: list[str]
    printing: bool


def read_line(door: Door, arguments: Sequence[str]) -> DoorLine:
    """Read a command line behind a door: the program, its arguments, and flags of ours behind ``--``."""
    words, printing = take_print_config(arguments)
    name, version = _version_apart(words[0])
    program = find_program(door, name)
    theirs, ours = _split_at_dashes(words[1:])
    given = program.read(theirs, version)
    return DoorLine(typed=words[0], program=program, given=given, ours=ours, printing=printing)


@cache
def programs(door: Door) -> Mapping[str, Program]:
    """Return the programs by name, in the order of their positions; those without one come last."""
    found = [read_program(str(path), door) for path in door.folder.glob(f"*/*{FILE_ENDING}")]
    last = len(found) + max((program.position or 0 for program in found), default=0)
    found.sort(key=lambda program: (program.position or last, program.name))
    return {program.name: program for program in found}


def find_program(door: Door, name: str) -> Program:
    """Return the program of that name, or in that file. UsageError names the nearest."""
    if name.endswith(FILE_ENDING):
        return read_program(name, door)
    vendor, _, file = name.partition("/")
    place = door.folder / vendor.replace("-", "_") / f"{file.rpartition('.')[0]}{FILE_ENDING}"
    if file.isprintable() and "/" not in file and place.is_file():
        program = read_program(str(place), door)
        if program.name == name:
            return program
    known = programs(door)
    stems = [one for one in known if one.rpartition(".")[0] == name]
    if len(stems) == 1:  # as a README may print it
        return known[stems[0]]
    last = [one for one in known if one.rpartition("/")[2] == name.rpartition("/")[2]]
    near = last or get_close_matches(name, known, n=1)
    hint = f"did you mean {' or '.join(near)}?" if near else _known(door, known)
    raise UsageError(f"{name!r} is no known program; {hint}")


def programs_with(door: Door, name: str) -> list[str]:
    """Return the programs that have a flag or a key of that name, with hyphens or underscores."""
    plain = name.lstrip("-").replace("-", "_")
    return [
        program.name
        for program in programs(door).values()
        if any(plain == flag.name for table in program.commands.values() for flag in table.flags)
    ]


def _known(door: Door, known: Mapping[str, Program]) -> str:
    are = "is" if len(known) == 1 else "are"
    return f"known {are} {', '.join(known)}{'; ' if door.elsewhere else ''}{door.elsewhere}"


def _version_apart(word: str) -> tuple[str, str]:
    """Return the program's name and the version behind ``@``, or "". A file's path may have an @ too."""
    name, at, version = word.rpartition("@")
    return (name, version) if at and "/" not in version and FILE_ENDING not in version else (word, "")


def _split_at_dashes(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the program's arguments, and ours behind the first ``--``."""
    place = words.index("--") if "--" in words else len(words)
    return list(words[:place]), list(words[place + 1 :])
