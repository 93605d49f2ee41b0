"""Command lines of other programs: a table of flags each, read by the rules of the program's own parser."""

import argparse
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, NoReturn

from bertdata.cli.common.absl_flags import boolean, integer, read_command_line
from bertdata.cli.common.parser import Parser
from bertdata.errors import UsageError
from bertdata.io.terminal import printable

SWITCH = "switch"
"""Kind of a flag without a value: true where it is given."""

ARGPARSE, ABSL, ABSL_APP = "argparse", "absl", "absl app"
"""Syntaxes. ABSL is that of scripts under ``tf.app``, which ignore flags that they do not know; those under
``absl.app`` itself (ABSL_APP) refuse them."""


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag, as a row of its program's table.

    names: every spelling, the one that names the value last. kind: SWITCH, or the reader of a value's text.
    default: the program's; with a count that of all values. meaning: a line of help, with the unit. key: the
    key of our own configuration that has the same value. values: what the program accepts, each with the
    value that it stands for in the key. count: of values that follow; "+" one or more, "?" at most
    one, without which it is true. idle: the flag has no effect here, and meaning says why.
    """

    names: str
    kind: Callable[[str], Any] | str = str
    default: Any = None
    meaning: str = ""
    key: str | None = None
    values: Mapping[Any, Any] | Sequence[Any] | None = None
    count: int | str | None = None
    required: bool = False
    idle: bool = False

    @property
    def spellings(self) -> list[str]:
        return self.names.split()

    @property
    def name(self) -> str:
        """The name of the value: the last spelling, with underscores."""
        return self.spellings[-1].lstrip("-").replace("-", "_")

    @property
    def is_boolean(self) -> bool:
        return self.kind is boolean or self.kind == SWITCH

    def of_key(self, value: Any) -> Any:
        """The value as the key has it."""
        if isinstance(value, list):
            return [self.of_key(one) for one in value]
        return self.values.get(value, value) if isinstance(self.values, Mapping) else value


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """A command line as the program reads it.

    table: the flags that the program has. values: of every one by its name, the program's defaults included.
    explicit: the names of those on the command line. warnings: what the program ignores without a word, and
    what is done otherwise than by the program.
    """

    command: str
    version: str
    table: Sequence[Flag]
    values: dict[str, Any]
    explicit: frozenset[str]
    warnings: list[str] = field(default_factory=list)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def __contains__(self, name: str) -> bool:
        """True for a flag that is on the command line."""
        return name in self.explicit

    def warn(self, *texts: str) -> None:
        self.warnings.extend(texts)


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramFlags:
    """The flags of a program, or of one of its sub-commands.

    prog: what the help shows as the command. ours: the command whose flags may follow behind ``--``. others:
    the flags of other versions, by version ("" the default), for errors.
    """

    prog: str
    example: str
    summary: str
    table: Sequence[Flag]
    ours: str
    syntax: str = ARGPARSE
    others: Mapping[str, Sequence[Flag]] = field(default_factory=dict)

    def read(self, arguments: Sequence[str], command: str = "", version: str = "") -> Given:
        """The values. UsageError, in the parser's own words, for a command line that the program refuses."""
        parser = self.parser()
        words, warnings = list(arguments), list[str]()
        if self.syntax != ARGPARSE:
            known = {one.lstrip("-"): flag.is_boolean for flag in self.table for one in flag.spellings}
            line = read_command_line(words, known)
            if self.syntax == ABSL_APP and line.unknown:
                parser.error(_unknown(line.unknown[0], known))
            words, warnings = line.flags, line.warnings
        found, unknown = parser.parse_known_args(words)
        if unknown:
            parser.error(f"unrecognized arguments: {' '.join(unknown)}{self._hint(unknown)}")
        explicit = vars(found)
        defaults = {flag.name: list(flag.default) if isinstance(flag.default, tuple) else flag.default
                    for flag in self.table}  # fmt: skip
        switches = {flag.name: False for flag in self.table if flag.kind == SWITCH and flag.default is None}
        return Given(
            command=command,
            version=version,
            table=self.table,
            values=defaults | switches | explicit,
            explicit=frozenset(explicit),
            warnings=warnings,
        )

    def parser(self) -> "_ProgramParser":
        """The parser, whose help is the table."""
        parser = _ProgramParser(self.prog, self.example, self.summary, self.syntax)
        parser.usage = f"%(prog)s [FLAG VALUE ...] [-- flags of {self.ours}]"
        shown = parser.add_argument_group("flags")
        idle = parser.add_argument_group("flags without effect here")
        for flag in self.table:
            _add(idle if flag.idle else shown, flag, self.syntax)
        return parser

    def _hint(self, unknown: Sequence[str]) -> str:
        """The version or the nearest flag that the first unknown word may mean."""
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
    """A parser of another program's flags: abbreviations where its own takes them, errors as UsageError."""

    def __init__(self, prog: str, example: str, summary: str, syntax: str) -> None:
        super().__init__(prog, example, summary)
        self.allow_abbrev = syntax == ARGPARSE

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {printable(message)}")


def _add(group: argparse._ArgumentGroup, flag: Flag, syntax: str) -> None:
    default = "" if flag.default is None or flag.kind == SWITCH else f" (default: {_shown(flag.default)})"
    words = flag.meaning + default
    if flag.idle:
        words = f"without effect here{': ' if flag.meaning else ''}{flag.meaning}"
    more: dict[str, Any] = {"help": words.replace("%", "%%"), "dest": flag.name, "default": argparse.SUPPRESS}
    if flag.required:
        more["required"] = True
    if flag.kind == SWITCH and syntax == ARGPARSE:
        group.add_argument(*flag.spellings, action="store_true", **more)
        return
    if flag.values is not None:
        more["choices"] = list(flag.values)
    more["type"] = boolean if flag.kind == SWITCH else flag.kind
    more["metavar"] = _METAVARS.get(more["type"], "X")
    if more["type"] is float:
        more["type"] = _number
    if flag.count is not None:
        more["nargs"] = flag.count
    if flag.count == "?":
        more["const"] = True
    group.add_argument(*flag.spellings, **more)


def _number(text: str) -> float:
    """Return a float, in argparse's words where it is none. Nothing can be computed with NaN."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if math.isnan(found):
        raise argparse.ArgumentTypeError(f"invalid float value: {text!r:.80}")
    return found


def _unknown(name: str, known: Iterable[str]) -> str:
    """absl's message about an unknown flag."""
    near = get_close_matches(name, known, n=1)
    return f"Unknown command line flag {name!r}." + (f" Did you mean: {near[0]} ?" if near else "")


def _shown(value: Any) -> str:
    if isinstance(value, tuple | list):
        return " ".join(map(_shown, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


_METAVARS: dict[Any, str] = {int: "INT", integer: "INT", float: "FLOAT", boolean: "BOOL", str: "X"}
