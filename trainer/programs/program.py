"""Another program: its tables of flags, the meaning of its command lines, and all programs by name.

A program's module is imported when it is asked for.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from bertdata.cli.common.program_flags import ARGPARSE, Flag, Given, ProgramFlags
from bertdata.errors import UsageError
from bertdata.io.json_text import parse_json_text

DOOR = "python -m trainer like"


@dataclass(frozen=True, kw_only=True, slots=True)
class Meaning:
    """The meaning of a command line, in this trainer's own terms.

    what: the work, for a person. phases: the keys of the configuration, one mapping a phase; a command that
    fine-tunes or evaluates has one. evaluate, convert: the settings of a command that does that instead.
    """

    what: str
    phases: Sequence[Mapping[str, Any]] = ()
    evaluate: dict[str, Any] | None = None
    convert: dict[str, Any] | None = None

    @property
    def summary(self) -> str:
        """One line for a person: the work, its length, an update's size, precision, optimiser, device."""
        if not self.phases or self.evaluate is not None:
            return self.what
        first = self.phases[0]
        if not first.get("do_train", True):
            return f"{self.what}, no training, {first['precision']}, {first['device']}"
        unit = "features" if first.get("task") else "examples"
        unit = "packed rows" if first.get("packed_accumulation") else unit
        lengths, sizes = (", then ".join(map(told, self.phases)) for told in (_length_of, _size_of))
        kinds = (first[name] for name in ("precision", "optimiser", "device"))
        return ", ".join([self.what, lengths, f"{sizes} {unit} an update", *kinds])


def _length_of(keys: Mapping[str, Any]) -> str:
    if keys.get("steps"):
        return f"{keys['steps']:,} updates"
    epochs = keys["num_train_epochs"]
    return "1 epoch" if epochs == 1 else f"{epochs:g} epochs"


def _size_of(keys: Mapping[str, Any]) -> str:
    """The product of workers, micro-batch and micro-batches: 8 x 64 x 128 = 65,536."""
    workers = keys.get("world_size") or keys.get("replicas") or 1
    factors = (workers, keys["batch_size"], keys["accumulation"])
    return f"{' x '.join(f'{factor:,}' for factor in factors)} = {math.prod(factors):,}"


@dataclass(frozen=True, kw_only=True, slots=True)
class About:
    """Facts about a program from ``programs.json``.

    purpose: for the list of programs. module: of this package, with its tables. title: for the lines that a
    person reads. source: repository, commit, version and file that the tables were made from. published:
    command lines as their authors print them. also_published: further ones, told in a line each.
    """

    purpose: str
    module: str
    title: str
    source: str
    published: Sequence[str]
    also_published: Sequence[str] = ()


@cache
def programs() -> dict[str, About]:
    """The programs that are known, by name."""
    text = (Path(__file__).parent / "programs.json").read_text(encoding="utf-8")
    return {name: About(**facts) for name, facts in parse_json_text(text).items()}


@dataclass(frozen=True, slots=True)
class Program:
    """Another program.

    name: as in ``like NAME``. commands: the flags of each sub-command; "" for a program without.
    versions: the tables of other versions, chosen by ``like NAME@VERSION``.
    """

    name: str
    commands: Mapping[str, Sequence[Flag]]
    resolve: Callable[[Given], Meaning]
    versions: Mapping[str, Mapping[str, Sequence[Flag]]] = field(default_factory=dict)
    syntax: str = ARGPARSE

    @property
    def about(self) -> About:
        return programs()[self.name]

    def read(self, arguments: Sequence[str], version: str = "") -> Given:
        """The command line's values. UsageError, in the program's words, for what the program refuses."""
        tables = self._tables(version)
        if "" in tables:
            return self.flags("", version).read(arguments, "", version)
        expected = " or ".join(tables)
        if arguments and arguments[0] in tables:
            return self.flags(arguments[0], version).read(arguments[1:], arguments[0], version)
        if arguments and arguments[0] in ("-h", "--help"):
            raise UsageError(f"{self.name}: name the sub-command first: {expected}, then --help")
        found = f"found {arguments[0]!r}" if arguments else "found none"
        raise UsageError(f"{self.name}: expected a sub-command, {expected}; {found}")

    def flags(self, command: str = "", version: str = "") -> ProgramFlags:
        """The flags of a sub-command."""
        others = {
            other: tables[command]
            for other, tables in {"": self.commands, **self.versions}.items()
            if other != version and command in tables
        }
        at, about = f"@{version}" if version else "", self.about
        return ProgramFlags(
            prog=f"{DOOR} {self.name}{at}{' ' if command else ''}{command}",
            example=f"  {DOOR} {self.name} {about.published[0]}",
            summary=f"The command line of {about.title} ({about.source}), with the meaning it has there.\n"
            "Flags of python -m trainer may follow after --, and go before all others; --print-config\n"
            "prints the configuration instead of training.",
            table=self._tables(version)[command],
            ours="python -m trainer",
            syntax=self.syntax,
            others=others,
        )

    def _tables(self, version: str) -> Mapping[str, Sequence[Flag]]:
        if version and version not in self.versions:
            known = ", ".join(f"@{one}" for one in self.versions) or "none"
            raise UsageError(f"{self.name}@{version}: no such version; known besides the default are {known}")
        return self.versions[version] if version else self.commands


def find_program(name: str) -> Program:
    """The program of that name. UsageError names the nearest."""
    known = programs()
    if name not in known:
        last = [one for one in known if one.rpartition("/")[2] == name.rpartition("/")[2]]
        near = last or get_close_matches(name, known, n=1)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(known)}"
        raise UsageError(f"{name!r} is no known program; {hint}")
    found = vars(import_module(f"trainer.programs.{known[name].module}")).values()
    return next(one for one in found if isinstance(one, Program) and one.name == name)


def programs_with(name: str) -> list[str]:
    """The programs that have a flag or a key of that name, with hyphens or underscores."""
    plain = name.lstrip("-").replace("-", "_")
    return [
        program
        for program in programs()
        if any(plain == flag.name for table in find_program(program).commands.values() for flag in table)
    ]


def work_of(given: Given) -> str:
    """The verbs of the switches --do_train, --do_eval and --do_predict that are true."""
    return ", ".join(verb for verb in ("train", "eval", "predict") if given.values.get(f"do_{verb}"))


def require_flags(given: Given, *names: str) -> None:
    """UsageError, in absl's words, for the first of the flags without a value."""
    for name in names:
        if given[name] is None:
            raise UsageError(f"flag --{name}=None: Flag --{name} must have a value other than None.")


def require_work(given: Given, *switches: str) -> None:
    """UsageError, in the programs' words, where none of the switches is true."""
    if not any(given[name] for name in switches):
        *others, last = (f"`{name}`" for name in switches)
        raise UsageError(f"At least one of {', '.join(others)} or {last} must be True.")


def require_files(given: Given, files: Mapping[str, str]) -> None:
    """UsageError, in the programs' words, for a switch that is true without its file."""
    for switch, name in files.items():
        if given[switch] and not given[name]:
            raise UsageError(f"If `{switch}` is True, then `{name}` must be specified.")
