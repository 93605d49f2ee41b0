"""Argument parser of all commands, whose help starts with a working example, and the types of flags."""

import argparse
import math
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn

from bertdata.config.declared import MAX_INTEGER
from bertdata.io.foreign_text import MOST_DIGITS
from bertdata.io.terminal import escape_unprintable, shorten

_last_used: list["Parser"] = []


class Parser(argparse.ArgumentParser):
    """Argument parser whose help begins with an example and whose errors are one line, with exit status 2.

    has_others: unknown flags may belong to another program, such as Beam's runner, so they are no errors.
    """

    def __init__(self, prog: str, example: str, summary: str, *, has_others: bool = False) -> None:
        super().__init__(
            prog=prog,
            description=f"Example:\n{example}\n\n{summary}",
            formatter_class=_HelpFormatter,
            allow_abbrev=False,
        )
        self._words: list[str] = []
        self._has_others = has_others

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the words. Keep them, and this parser, for later error messages."""
        self._words = list(sys.argv[1:] if args is None else args)
        _last_used.clear()
        _last_used.append(self)
        self._refuse_dashes_as_value()
        return super().parse_known_args(self._words, namespace)

    def _refuse_dashes_as_value(self) -> None:
        """Exit with an error for ``--flag=--`` and ``-f--``.

        Python's argparse treats such a value differently in each version. Python 3.11 drops it, and the flag
        then has neither a value nor its default.
        """
        flags = self._words[: self._words.index("--")] if "--" in self._words else self._words
        for word in flags:
            name, _, value = word.partition("=")
            if not value and len(word) == 4 and word[1] != "-":
                name, value = word[:2], word[2:]
            if word.startswith("-") and value == "--":
                self.error(f"argument {name}: '--' is no value")

    def format_help(self) -> str:
        """Return the help: description with the example first, then usage and flags."""
        formatter = self._get_formatter()
        formatter.add_text(self.description)
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        for group in self._action_groups:
            formatter.start_section(group.title)
            formatter.add_text(group.description)
            formatter.add_arguments(group._group_actions)
            formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def error(self, message: str) -> NoReturn:
        """Exit with status 2 and a message.

        If the command line has unknown flags, the message names them instead.
        """
        message = self._unknown_flags(message)
        self.exit(2, f"{self.prog}: error: {shorten(escape_unprintable(message))} (see {self.prog} --help)\n")

    def _unknown_flags(self, message: str) -> str:
        """Return a message that names unknown flags, each with the most similar known flag.

        Without unknown flags, return ``message``.
        """
        from bertdata.config.value_check import suggest_known  # slow to import, and used only for errors

        # argparse reports only its first problem, often a missing value that an unknown flag has caused. So
        # name the unknown flags instead. Words after -- are not flags.
        flags = self._words[: self._words.index("--")] if "--" in self._words else self._words
        names = [word.partition("=")[0] for word in flags if word.startswith("--") and " " not in word]
        known = [name for name in self._option_string_actions if name.startswith("--")]
        near = {name: suggest_known(name, known) for name in names if name not in known}
        told = [
            f"{name} is not a known flag{near[name]}" for name in near if near[name] or not self._has_others
        ]
        return "; ".join(told) or message


def name_settings_by_flag(message: str) -> str:
    """Return the message with settings named by their flags: --bin-size for bin_size.

    The flags are those of the parser that was used last. A name without an underscore may be an ordinary
    word, so it is replaced only if it is the first word of the message.
    """
    flags = {
        action.dest: next(name for name in action.option_strings if name.startswith("--"))
        for parser in _last_used
        for action in parser._actions
        if action.option_strings
    }
    words = message.split(" ")
    for place, word in enumerate(words):
        name = word.rstrip(",;:.")
        if name in flags and ("_" in name or (place == 0 and name == word)):
            words[place] = flags[name] + word[len(name) :]
    return " ".join(words)


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help formatter that does not break lines at hyphens, so that names stay whole.

    argparse creates a formatter for every argument that is added. Without a width, each of them would ask the
    terminal.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_find_line_width())

    def _split_lines(self, text: str, width: int) -> list[str]:
        import textwrap  # slow to import, and used only for help

        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


@cache
def _find_line_width() -> int:
    """Return the width of help lines: the variable COLUMNS or else the terminal's width, minus 2."""
    try:
        columns = int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        columns = 0
    if columns <= 0:
        try:
            columns = os.get_terminal_size(sys.__stdout__.fileno()).columns if sys.__stdout__ else 0
        except (OSError, ValueError):
            columns = 0
    return (columns or 80) - 2


def parse_positive(text: str) -> int:
    """Convert a flag's text to an integer from 1 to MAX_INTEGER, for argparse."""
    return _check_range(parse_integer(text), text, 1)


def parse_not_negative(text: str) -> int:
    """Convert a flag's text to an integer from 0 to MAX_INTEGER, for argparse."""
    return _check_range(parse_integer(text), text, 0)


def _check_range(number: int, text: str, least: int) -> int:
    """Return the number if it is from ``least`` to MAX_INTEGER. ArgumentTypeError otherwise.

    text: the number as the user typed it, for the error.
    """
    if not least <= number <= MAX_INTEGER:
        words = f"{least} or more" if number < least else f"at most {MAX_INTEGER}"
        raise argparse.ArgumentTypeError(f"{text!r:.80} is out of range, expected {words}")
    return number


def parse_integer(text: str) -> int:
    """Convert a flag's text to an integer of at most MOST_DIGITS digits, for argparse."""
    try:
        if len(text) <= MOST_DIGITS:
            return int(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r:.80} is not an integer of at most {MOST_DIGITS} digits")


def parse_number(text: str) -> float:
    """Convert a flag's text to a float, for argparse. Infinity is allowed, NaN is not."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if math.isnan(found):
        raise argparse.ArgumentTypeError(f"{text!r:.80} is not a number")
    return found


NUMBERS: dict[Any, Callable[[str], Any]] = {int: parse_integer, float: parse_number}
"""Converters for flags, by the type of the setting. The setting checks its own bounds."""


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add --engine, which chooses between the C++ kernels and Python."""
    parser.add_argument(
        "--engine",
        choices=("native", "python"),
        help="native: the C++ kernels (default if they are built); python: the slow, readable reference code",
    )


def add_workers(parser: argparse._ActionsContainer) -> None:
    """Add --workers, the number of processes."""
    parser.add_argument(
        "--workers",
        type=parse_positive,
        metavar="N",
        help="number of processes (default: one per core); the result is the same for any number",
    )


def add_overwrite(parser: argparse._ActionsContainer) -> None:
    """Add --overwrite, which allows replacing a file of another type. Inputs are never replaced."""
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace an existing file even if it does not look like output of this command",
    )


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    """Add --dry-run, which prints what would be made and writes nothing."""
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print what would be made and what would be kept, and write nothing",
    )
