"""Argument parsers whose help begins with an example that works."""

import argparse
import math
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn

from bertdata.config.declared import MOST_WHOLE
from bertdata.io.foreign_text import MOST_DIGITS
from bertdata.io.terminal import printable, shortened

_last_used: list["Parser"] = []


class Parser(argparse.ArgumentParser):
    """An argument parser. Its description (the example) comes first, its errors are one line, exit 2.

    has_others: flags that it does not know may be another program's.
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
        self._words = list(sys.argv[1:] if args is None else args)
        _last_used.clear()
        _last_used.append(self)
        self._refuse_dashes_as_value()
        return super().parse_known_args(self._words, namespace)

    def _refuse_dashes_as_value(self) -> None:
        """End with an error for ``--flag=--`` and ``-f--``, of which argparse drops the value or keeps it.

        It drops it in Python 3.11, so that a flag had no value, not even its default.
        """
        flags = self._words[: self._words.index("--")] if "--" in self._words else self._words
        for word in flags:
            name, _, value = word.partition("=")
            if not value and len(word) == 4 and word[1] != "-":
                name, value = word[:2], word[2:]
            if word.startswith("-") and value == "--":
                self.error(f"argument {name}: '--' is no value")

    def format_help(self) -> str:
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
        """End with the message. Where a flag is unknown, the unknown ones are told instead."""
        message = self._unknown_flags(message)
        self.exit(2, f"{self.prog}: error: {shortened(printable(message))} (see {self.prog} --help)\n")

    def _unknown_flags(self, message: str) -> str:
        """The unknown flags, each with the nearest known one, and the message where there are none."""
        from bertdata.config.value_check import nearest_known  # slow to import, and needed for errors alone

        flags = self._words[: self._words.index("--")] if "--" in self._words else self._words
        names = [word.partition("=")[0] for word in flags if word.startswith("--") and " " not in word]
        known = [name for name in self._option_string_actions if name.startswith("--")]
        near = {name: nearest_known(name, known) for name in names if name not in known}
        told = [
            f"{name} is not a known flag{near[name]}" for name in near if near[name] or not self._has_others
        ]
        return "; ".join(told) or message


def with_flags(message: str) -> str:
    """The message with settings named as the flags of the parser that was used last: --bin-size for bin_size.

    Of settings without an underscore only the message's first word, since others may be meant as words.
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
    """Help whose lines do not break at hyphens, so that names stay whole.

    argparse makes a formatter for each argument that is added; without a width each would ask the terminal.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_line_width())

    def _split_lines(self, text: str, width: int) -> list[str]:
        import textwrap  # slow to import, and needed for help alone

        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


@cache
def _line_width() -> int:
    """Characters of a line of help: those of COLUMNS or of the terminal, less a margin of two."""
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


def positive(text: str) -> int:
    """Return an integer of 1 to MOST_WHOLE, for argparse."""
    return _within(integer(text), text, 1)


def not_negative(text: str) -> int:
    """Return an integer of 0 to MOST_WHOLE, for argparse."""
    return _within(integer(text), text, 0)


def _within(number: int, text: str, least: int) -> int:
    if not least <= number <= MOST_WHOLE:
        words = f"{least} or more" if number < least else f"at most {MOST_WHOLE}"
        raise argparse.ArgumentTypeError(f"{text!r:.80} is out of range, expected {words}")
    return number


def integer(text: str) -> int:
    """Return an integer of any size that our files can hold, for argparse."""
    try:
        if len(text) <= MOST_DIGITS:
            return int(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r:.80} is not an integer of at most {MOST_DIGITS} digits")


def number(text: str) -> float:
    """Return a number, for argparse. Infinity is one, NaN is not."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if math.isnan(found):
        raise argparse.ArgumentTypeError(f"{text!r:.80} is not a number")
    return found


NUMBERS: dict[Any, Callable[[str], Any]] = {int: integer, float: number}
"""The reader of a flag's text by the type of its setting, whose bounds the setting itself checks."""


def add_engine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--engine",
        choices=("native", "python"),
        help="native: the C++ kernels (default if they are built); python: the slow, readable reference code",
    )


def add_workers(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--workers",
        type=positive,
        metavar="N",
        help="number of processes (default: one per core); the result is the same for any number",
    )


def add_overwrite(parser: argparse._ActionsContainer) -> None:
    """Add the flag that lets a file of another kind go. No flag lets an input go."""
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace an existing file even if it does not look like output of this command",
    )


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print what would be made and what would be kept, and write nothing",
    )
