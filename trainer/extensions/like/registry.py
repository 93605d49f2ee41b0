"""The programs by name. A program's module is imported when it is asked for."""

from difflib import get_close_matches
from importlib import import_module

from bertdata.errors import UsageError
from trainer.extensions.like.program import Program, programs


def find_program(name: str) -> Program:
    """The program of that name. UsageError names the nearest."""
    known = programs()
    if name not in known:
        last = [one for one in known if one.rpartition("/")[2] == name.rpartition("/")[2]]
        near = last or get_close_matches(name, known, n=1)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(known)}"
        raise UsageError(f"{name!r} is no known program; {hint}")
    found = vars(import_module(f"trainer.extensions.like.{known[name].module}")).values()
    return next(one for one in found if isinstance(one, Program) and one.name == name)


def programs_with(name: str) -> list[str]:
    """The programs that have a flag or a key of that name, with hyphens or underscores."""
    plain = name.lstrip("-").replace("-", "_")
    return [
        program
        for program in programs()
        if any(plain == flag.name for table in find_program(program).commands.values() for flag in table)
    ]
