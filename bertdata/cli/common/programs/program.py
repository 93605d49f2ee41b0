"""Another program: what its file states, and how its command lines are read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertdata.cli.common.programs.command_line import ARGPARSE, Given, ProgramFlags
from bertdata.cli.common.programs.door import Door
from bertdata.cli.common.programs.flag import Flag
from bertdata.errors import UsageError


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """The flags of a program or of a sub-command, and the keys of ours that no flag changes."""

    flags: Sequence[Flag] = ()
    keys: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """Another program.

    path: of its file. name: as in ``like NAME``. title: for the lines that a person reads. purpose: for the
    list of programs. source: repository, commit, version and file that the tables were made from. compared:
    what was run beside the original, and how far it is followed. published:
    command lines as their authors print them. also_published: further ones, told in a line each. position:
    place in the list of programs. work: what a command line does, where no function says it. variables: those
    of the environment that it reads, each a flag without hyphens. versions: for each version, "" the default,
    the table of each sub-command; "" for a program without sub-commands.
    """

    door: Door
    path: str
    name: str
    title: str
    purpose: str
    source: str
    compared: str = ""
    published: Sequence[str]
    also_published: Sequence[str] = ()
    position: int | None = None
    syntax: str = ARGPARSE
    work: str = ""
    variables: Sequence[Flag] = ()
    versions: Mapping[str, Mapping[str, Table]]

    @property
    def commands(self) -> Mapping[str, Table]:
        """The tables of the default version."""
        return self.versions[""]

    @property
    def other_versions(self) -> list[str]:
        return [version for version in self.versions if version]

    @property
    def is_shipped(self) -> bool:
        """True for a program of this package. A file of a user's own names no function of ours."""
        return Path(self.path).is_relative_to(self.door.folder)

    @property
    def command(self) -> str:
        """The program as a person types it: a name behind the door, or the path of a user's own file."""
        return f"{self.door.command} {self.name if self.is_shipped else self.path}"

    @property
    def example(self) -> str:
        """The first published command line, behind the door."""
        return f"  {self.command} {self.published[0]}"

    def read(self, arguments: Sequence[str], version: str = "") -> Given:
        """Return the values of a command line. UsageError, in its words, where it refuses the line."""
        words, rewriting = arguments, self.door.rewritings.get(self.name)
        if rewriting is not None and self.is_shipped:
            words, version = rewriting(arguments, version)
        tables = self._tables(version)
        if "" in tables:
            return self.flags("", version).read(words, "", version)
        expected = " or ".join(tables)
        if words and words[0] in tables:
            return self.flags(words[0], version).read(words[1:], words[0], version)
        if words and words[0] in ("-h", "--help"):
            raise UsageError(f"{self.name}: name the sub-command first: {expected}, then --help")
        found = f"found {words[0]!r}" if words else "found none"
        raise UsageError(f"{self.name}: expected a sub-command, {expected}; {found}")

    def flags(self, command: str = "", version: str = "") -> ProgramFlags:
        """Return the flags of a sub-command."""
        others = {
            other: tables[command].flags
            for other, tables in self.versions.items()
            if other != version and command in tables
        }
        at, table = f"@{version}" if version else "", self._tables(version)[command]
        usual = self.commands.get(command) or self.commands.get("")
        return ProgramFlags(
            prog=f"{self.command}{at}{' ' if command else ''}{command}",
            example=self.example,
            summary=f"The command line of {self.title} ({self.source}), with the meaning it has there.\n"
            f"Flags of {self.door.ours} may follow after --, and go before all others; --print-config\n"
            f"{self.door.printing}.",
            table=table.flags,
            variables=self.variables,
            constants=table.keys,
            ours=self.door.ours,
            syntax=self.syntax,
            usual=usual.flags if usual else (),
            others=others,
        )

    def _tables(self, version: str) -> Mapping[str, Table]:
        if version not in self.versions:
            known = [f"@{one}" for one in self.other_versions]
            are = "is" if len(known) == 1 else "are"
            raise UsageError(
                f"{self.name}@{version}: no such version; known besides the default {are} "
                f"{', '.join(known) or 'none'}"
            )
        return self.versions[version]
