"""The programs that a ``like`` command knows, and the choice of a program by its name or by a TOML file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

from bertdata.cli.common.print_config_flag import remove_print_config_flag
from bertdata.cli.common.programs.command_line import ParsedCommandLine
from bertdata.cli.common.programs.like_command import LikeCommand
from bertdata.cli.common.programs.program import Program
from bertdata.cli.common.programs.program_file import read_program
from bertdata.errors import UsageError

FILE_ENDING = ".toml"


@dataclass(frozen=True, kw_only=True, slots=True)
class LikeCommandLine:
    """A command line of a ``like`` command, split into its parts.

    typed: the other program's name and version as the user typed them.
    given: the other program's command line, with the value of each flag.
    ours: the words after ``--``, which are flags of bertdata or of the trainer.
    printing: True if the line has --print-config.
    """

    typed: str
    program: Program
    given: ParsedCommandLine
    ours: list[str]
    printing: bool


def split_like_line(like_command: LikeCommand, arguments: Sequence[str]) -> LikeCommandLine:
    """Split the command line of a ``like`` command into the program, the program's arguments, and the flags
    after ``--``.
    """
    words, printing = remove_print_config_flag(arguments)
    name, version = _split_version(words[0])
    program = find_program(like_command, name)
    theirs, ours = _split_at_dashes(words[1:])
    given = program.read(theirs, version)
    return LikeCommandLine(typed=words[0], program=program, given=given, ours=ours, printing=printing)


@cache
def list_programs(like_command: LikeCommand) -> Mapping[str, Program]:
    """Return the known programs by name.

    They are ordered by their ``position``. Programs without a position come last.
    """
    found = [read_program(str(path), like_command) for path in like_command.folder.glob(f"*/*{FILE_ENDING}")]
    last = len(found) + max((program.position or 0 for program in found), default=0)
    found.sort(key=lambda program: (program.position or last, program.name))
    return {program.name: program for program in found}


def find_program(like_command: LikeCommand, name: str) -> Program:
    """Return the program of this name.

    The name may also be the path of a .toml file that describes a program.

    The ending may be left out, as in ``vendor/run_glue`` for ``vendor/run_glue.py``.

    Raises UsageError for an unknown name, and suggests similar names.
    """
    if name.endswith(FILE_ENDING):
        return read_program(name, like_command)
    # Reading the files of all programs takes long, so first try the file whose path follows from the name.
    vendor, _, file = name.partition("/")
    place = like_command.folder / vendor.replace("-", "_") / f"{file.rpartition('.')[0]}{FILE_ENDING}"
    if file.isprintable() and "/" not in file and place.is_file():
        program = read_program(str(place), like_command)
        if program.name == name:
            return program
    known = list_programs(like_command)
    stems = [one for one in known if one.rpartition(".")[0] == name]
    if len(stems) == 1:  # the user may have left out the ending .py
        return known[stems[0]]
    last = [one for one in known if one.rpartition("/")[2] == name.rpartition("/")[2]]
    near = last or get_close_matches(name, known, n=1)
    hint = f"did you mean {' or '.join(near)}?" if near else _describe_known_programs(like_command, known)
    raise UsageError(f"{name!r} is no known program; {hint}")


def list_programs_with_flag(like_command: LikeCommand, name: str) -> list[str]:
    """Return the names of the programs that have this flag. Hyphens and underscores in it are equivalent."""
    plain = name.lstrip("-").replace("-", "_")
    return [
        program.name
        for program in list_programs(like_command).values()
        if any(plain == flag.name for table in program.commands.values() for flag in table.flags)
    ]


def _describe_known_programs(like_command: LikeCommand, known: Mapping[str, Program]) -> str:
    """Return the names of all known programs, as the end of an error message."""
    are = "is" if len(known) == 1 else "are"
    return f"known {are} {', '.join(known)}{'; ' if like_command.elsewhere else ''}{like_command.elsewhere}"


def _split_version(word: str) -> tuple[str, str]:
    """Split ``PROGRAM@VERSION`` into program and version.

    The version is empty if there is no @. An @ within the path of a file does not count.
    """
    name, at, version = word.rpartition("@")
    return (name, version) if at and "/" not in version and FILE_ENDING not in version else (word, "")


def _split_at_dashes(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words before the first ``--``, and the words after it."""
    place = words.index("--") if "--" in words else len(words)
    return list(words[:place]), list(words[place + 1 :])
