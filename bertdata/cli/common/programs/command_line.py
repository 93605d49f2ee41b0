"""Reading of another program's command line by the rules of that program's own parser."""

import argparse
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, NoReturn

from bertdata.cli.common.absl_flags import parse_absl_boolean, parse_absl_integer, read_command_line
from bertdata.cli.common.parser import Parser, parse_number
from bertdata.cli.common.programs.flag import SWITCH, Flag
from bertdata.cli.common.programs.hugging_face import apply_negated_flags
from bertdata.errors import UsageError
from bertdata.io.terminal import escape_unprintable

ARGPARSE, HUGGING_FACE, ABSL, ABSL_APP = SYNTAXES = ("argparse", "hugging face", "absl", "absl app")
"""Names of the parsers that other programs use.

HUGGING_FACE is HfArgumentParser, which is argparse with a second spelling of each flag. ABSL is absl's parser
in scripts that run under ``tf.app`` and ignore unknown flags. ABSL_APP is absl's parser in scripts that run
under ``absl.app`` and refuse unknown flags.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedCommandLine:
    """Another program's command line, with the value of every flag as that program would read it.

    table: the program's flags.
    variables: environment variables that the program reads, each described like a flag.
    constants: configuration keys of bertdata or the trainer whose values the program fixes, by key.
    arguments: the words of the command line.
    values: the value of every flag and variable by name, including defaults.
    explicit: names of the flags on the command line and of the variables that are set.
    warnings: lines about what the program silently ignores, and about what bertdata or the trainer does
        differently.
    """

    command: str
    version: str
    table: Sequence[Flag]
    variables: Sequence[Flag]
    constants: Mapping[str, Any]
    arguments: Sequence[str]
    values: dict[str, Any]
    explicit: frozenset[str]
    warnings: list[str] = field(default_factory=list)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def __contains__(self, name: str) -> bool:
        """Return True if the flag is on the command line or the variable is set."""
        return name in self.explicit

    def without(self, name: str) -> "ParsedCommandLine":
        """Return a copy in which this flag or variable is not given and therefore has its default."""
        usual = _collect_defaults([flag for flag in (*self.variables, *self.table) if flag.name == name])
        return replace(
            self, values=self.values | usual, explicit=self.explicit - {name}, warnings=list[str]()
        )

    def warn(self, *texts: str) -> None:
        """Add warnings for the user."""
        self.warnings.extend(texts)

    def keys(self, phase: int = 0) -> dict[str, Any]:
        """Return the values under the configuration keys of bertdata or the trainer.

        Values of None are left out.

        Values of flags and variables override the program's constants.

        phase: number of the training phase, from 0. Some flags take two values, one for each phase.
        """
        found = dict(self.constants)
        for flag in (*self.variables, *self.table):
            value = self[flag.name]
            if flag.key is None or value is None:
                continue
            value = flag.convert_to_key_value(value)
            if isinstance(value, list) and (flag.count == 2 or len(value) == 1):
                value = value[phase]
            found[flag.key] = value
        return found


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramFlags:
    """The flags of a program, or of one of its sub-commands, with a parser for them.

    prog: the command as its help shows it.
    table: the flags.
    variables: environment variables that the program reads, each described like a flag.
    constants: configuration keys of bertdata or the trainer whose values the program fixes, by key.
    ours: the program bertdata or trainer, whose flags may follow after ``--``.
    usual: flags of the program's default version. If the version of this command line lacks one of them, the
        flag still has its default as value.
    others: flags of the program's other versions, by version, for error messages. The default version has the
        name "".
    """

    prog: str
    example: str
    summary: str
    table: Sequence[Flag]
    variables: Sequence[Flag]
    constants: Mapping[str, Any]
    ours: str
    syntax: str = ARGPARSE
    usual: Sequence[Flag] = ()
    others: Mapping[str, Sequence[Flag]] = field(default_factory=dict)

    def read(self, arguments: Sequence[str], command: str = "", version: str = "") -> ParsedCommandLine:
        """Parse a command line of the program.

        Raises UsageError for a command line that the program refuses, with the message of the program's own
        parser.
        """
        parser = self.parser()
        words, warnings = list(arguments), list[str]()
        # argparse cannot follow absl's rules. The line is therefore rewritten with each flag as --name=value,
        # which argparse can read.
        if self.syntax in (ABSL, ABSL_APP):
            known = {one.lstrip("-"): flag.is_boolean for flag in self.table for one in flag.spellings}
            line = read_command_line(words, known)
            if self.syntax == ABSL_APP and line.unknown:
                parser.error(_describe_unknown_flag(line.unknown[0], known))
            words, warnings = line.flags, line.warnings
        found, unknown = parser.parse_known_args(words)
        if unknown:
            parser.error(f"unrecognized arguments: {' '.join(unknown)}{self._suggest_known(unknown)}")
        explicit = vars(found)
        if self.syntax == HUGGING_FACE:
            explicit = apply_negated_flags(explicit, self.table)
        # Each source of values overrides the one before: the defaults of the default version, the defaults of
        # this version, the environment, and the command line.
        in_environment = _read_environment(self.variables)
        defaults = _collect_defaults(self.usual) | _collect_defaults((*self.variables, *self.table))
        given = ParsedCommandLine(
            command=command,
            version=version,
            table=self.table,
            variables=self.variables,
            constants=self.constants,
            arguments=arguments,
            values=defaults | in_environment | explicit,
            explicit=frozenset([*in_environment, *explicit]),
            warnings=warnings,
        )
        said = [flag for flag in self.table if flag.warning and flag.name in explicit]
        given.warn(*(f"{flag.spellings[-1]}: {flag.warning}" for flag in said))
        return given

    def parser(self) -> "_ProgramParser":
        """Return an argument parser for the flags.

        The help lists flags that have no effect here in a separate group.
        """
        parser = _ProgramParser(self.prog, self.example, self.summary, self.syntax)
        parser.usage = f"%(prog)s [FLAG VALUE ...] [-- flags of {self.ours}]"
        shown = parser.add_argument_group("flags")
        idle = parser.add_argument_group("flags without effect here")
        for flag in self.table:
            _add_flag(idle if flag.idle else shown, flag, self.syntax)
        if self.variables:
            width = max(len(variable.names) for variable in self.variables) + 2
            lines = [f"  {variable.names:<{width}}{_format_help(variable)}" for variable in self.variables]
            parser.epilog = "\n".join(["variables of the environment:", *lines])
        return parser

    def _suggest_known(self, unknown: Sequence[str]) -> str:
        """Return the end of an error message about unknown words.

        It names the version of the program that has the flag, or the most similar flag of this version.
        """
        word = next((one for one in unknown if one.startswith("-")), "").partition("=")[0]
        elsewhere = [
            version for version, table in self.others.items() if any(word in flag.spellings for flag in table)
        ]
        if elsewhere:
            if "" in elsewhere:
                return f" ({word} is a flag of the default version: leave out the @ and what follows it)"
            versions, first = ", ".join(elsewhere), elsewhere[0]
            return f" ({word} is a flag of version {versions}: append @{first} to the program)"
        near = get_close_matches(word, [one for flag in self.table for one in flag.spellings], n=1)
        return f" (did you mean {near[0]}?)" if near else ""


class _ProgramParser(Parser):
    """Argument parser for the flags of another program.

    It accepts abbreviated flags if the program does. Errors are raised as UsageError.
    """

    def __init__(self, prog: str, example: str, summary: str, syntax: str) -> None:
        super().__init__(prog, example, summary)
        self.allow_abbrev = syntax in (ARGPARSE, HUGGING_FACE)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {escape_unprintable(message)}")


def _collect_defaults(table: Sequence[Flag]) -> dict[str, Any]:
    """Return the default value of each flag. A switch without a default has the value False."""
    found = dict[str, Any]()
    for flag in table:
        default = list(flag.default) if isinstance(flag.default, tuple) else flag.default
        found[flag.name] = False if flag.kind == SWITCH and default is None else default
    return found


def _read_environment(variables: Sequence[Flag]) -> dict[str, Any]:
    """Return the values of the environment variables that are set. An empty variable counts as not set."""
    found = dict[str, Any]()
    for variable in variables:
        text = os.environ.get(variable.names)
        if not text:
            continue
        try:
            found[variable.names] = variable.kind(text) if callable(variable.kind) else text
        except ValueError:
            expected = "an integer" if variable.kind is int else "a number"
            raise UsageError(f"{variable.names} is {text!r}, expected {expected}") from None
    return found


def _format_help(flag: Flag) -> str:
    """Return the help line of a flag or variable, with its default."""
    has_default = not flag.idle and flag.shown_default is not None
    return flag.effect + (f" (default: {flag.shown_default})" if has_default else "")


def _add_flag(group: argparse._ArgumentGroup, flag: Flag, syntax: str) -> None:
    """Add a flag to a group of the argument parser.

    syntax: name of the parser that the other program uses, one of SYNTAXES.
    """
    more: dict[str, Any] = {
        "help": _format_help(flag).replace("%", "%%"),
        "dest": flag.name,
        "default": argparse.SUPPRESS,
    }
    if flag.required:
        more["required"] = True
    if flag.kind == SWITCH and syntax in (ARGPARSE, HUGGING_FACE):
        group.add_argument(*flag.spellings, action="store_true", **more)
        return
    if flag.values is not None:
        more["choices"] = list(flag.values)
    more["type"] = parse_absl_boolean if flag.kind == SWITCH else flag.kind
    more["metavar"] = _METAVARS.get(more["type"], "VALUE")
    if more["type"] is float:
        more["type"] = _parse_number
    if flag.count is not None:
        more["nargs"] = flag.count
    if flag.count == "?":
        more["const"] = True
    group.add_argument(*flag.spellings, **more)


def _parse_number(text: str) -> float:
    """Convert the text of a flag's value to a float, for argparse.

    NaN is refused with argparse's usual message.
    """
    try:
        return parse_number(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"invalid float value: {text!r:.80}") from None


def _describe_unknown_flag(name: str, known: Iterable[str]) -> str:
    """Return the message that absl prints for an unknown flag."""
    near = get_close_matches(name, known, n=1)
    return f"Unknown command line flag {name!r}." + (f" Did you mean: {near[0]} ?" if near else "")


_METAVARS: dict[Any, str] = {
    int: "INT",
    parse_absl_integer: "INT",
    float: "FLOAT",
    parse_absl_boolean: "BOOL",
    str: "TEXT",
}
