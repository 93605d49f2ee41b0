"""Description of another project's program, and the reading of its command lines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertdata.cli.common.programs.command_line import ARGPARSE, ParsedCommandLine, ProgramFlags
from bertdata.cli.common.programs.flag import Flag
from bertdata.cli.common.programs.like_command import LikeCommand
from bertdata.errors import UsageError


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """The flags of a program or of one of its sub-commands.

    keys: configuration keys of bertdata or the trainer whose values the program fixes, by key.
    """

    flags: Sequence[Flag] = ()
    keys: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """A program of another project, as its TOML file describes it.

    path: path of the TOML file.
    name: name of the program as the user types it after ``like``.
    title: name of the program in texts for people.
    purpose: what the program does, for the list of programs.
    source: repository, commit, version and file from which the description was made.
    compared: which results were compared with the original program's, and how closely they match.
    published: command lines that the program's authors published.
    also_published: descriptions of further published command lines, one line for each.
    position: place in the list of programs.
    work: a sentence that says what a command line does. It is used if no Python function describes it.
    variables: environment variables that the program reads, described like flags but without hyphens.
    versions: for each version of the program, the flags of each sub-command. The default version has the name
        "". A program without sub-commands has a single table, whose name is "" too.
    """

    like_command: LikeCommand
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
        """The flags of each sub-command in the default version, by the sub-command's name."""
        return self.versions[""]

    @property
    def other_versions(self) -> list[str]:
        """The names of all versions except the default version."""
        return [version for version in self.versions if version]

    @property
    def is_shipped(self) -> bool:
        """True if the program's description is part of this package, and not a file of the user's.

        Only such a program may use the ``rewritings`` of a ``like`` command.
        """
        return Path(self.path).is_relative_to(self.like_command.folder)

    @property
    def command(self) -> str:
        """Command that runs the program: the ``like`` command, followed by the program's name or its file."""
        return f"{self.like_command.command} {self.name if self.is_shipped else self.path}"

    @property
    def example(self) -> str:
        """The first command line that the program's authors published, as it is typed after ``like``."""
        return f"  {self.command} {self.published[0]}"

    def read(self, arguments: Sequence[str], version: str = "") -> ParsedCommandLine:
        """Parse a command line of the program.

        Raises UsageError for a command line that the program refuses, with the message of the program.
        """
        words, rewriting = arguments, self.like_command.rewritings.get(self.name)
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
        """Return the flags of a sub-command in a version of the program."""
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
            summary=f"The command line of {self.title} ({self.source}), with the same meaning.\n"
            f"Flags of {self.like_command.ours} may follow after -- and override all others. --print-config\n"
            f"{self.like_command.printing}.",
            table=table.flags,
            variables=self.variables,
            constants=table.keys,
            ours=self.like_command.ours,
            syntax=self.syntax,
            usual=usual.flags if usual else (),
            others=others,
        )

    def _tables(self, version: str) -> Mapping[str, Table]:
        """Return the flags of each sub-command in a version. Raises UsageError for an unknown version."""
        if version not in self.versions:
            known = [f"@{one}" for one in self.other_versions]
            are = "is" if len(known) == 1 else "are"
            raise UsageError(
                f"{self.name}@{version}: no such version; known besides the default {are} "
                f"{', '.join(known) or 'none'}"
            )
        return self.versions[version]
