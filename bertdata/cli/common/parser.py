"""Argument parser of all commands, flags that several commands have, and functions that convert values of
flags.
"""

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
    """Argument parser whose help begins with an example and whose errors are a single line with exit status
    2.

    has_others: True if unknown flags are no errors, because another program such as Beam's runner reads them.
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
        """Parse a command line. Keep its words, and this parser, for later error messages."""
        self._words = list(sys.argv[1:] if args is None else args)
        _last_used.clear()
        _last_used.append(self)
        self._refuse_dashes_as_value()
        return super().parse_known_args(self._words, namespace)

    def _refuse_dashes_as_value(self) -> None:
        """Exit with an error if the value of a flag is two dashes, as in ``--flag=--`` and ``-f--``.

        Each version of Python's argparse treats such a value differently. Python 3.11 drops it, so that the
        flag has neither a value nor its default.
        """
        flags = self._words[: self._words.index("--")] if "--" in self._words else self._words
        for word in flags:
            name, _, value = word.partition("=")
            if not value and len(word) == 4 and word[1] != "-":
                name, value = word[:2], word[2:]
            if word.startswith("-") and value == "--":
                self.error(f"argument {name}: '--' is no value")

    def format_help(self) -> str:
        """Return the help text: first the description with its example, then usage and flags."""
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
        """Print an error message and exit with status 2.

        If the command line has unknown flags, the message names these flags and ``message`` is not shown.
        """
        message = self._unknown_flags(message)
        self.exit(2, f"{self.prog}: error: {shorten(escape_unprintable(message))} (see {self.prog} --help)\n")

    def _unknown_flags(self, message: str) -> str:
        """Return a message that names the unknown flags, each with the most similar known flag.

        Returns ``message`` if all flags are known.
        """
        from bertdata.config.value_check import suggest_known  # slow to import, and used only for errors

        # argparse reports only the first problem that it meets. This is often a missing value, which is a
        # consequence of an unknown flag. The unknown flags are therefore named instead. Words after -- are
        # not flags.
        flags = self._words[: self._words.index("--")] if "--" in self._words else self._words
        names = [word.partition("=")[0] for word in flags if word.startswith("--") and " " not in word]
        known = [name for name in self._option_string_actions if name.startswith("--")]
        near = {name: suggest_known(name, known) for name in names if name not in known}
        told = [
            f"{name} is not a known flag{near[name]}" for name in near if near[name] or not self._has_others
        ]
        return "; ".join(told) or message


def name_settings_by_flag(message: str) -> str:
    """Return an error message in which settings are named by their flags, such as --bin-size for bin_size.

    The flags are those of the parser that was used last. A name without an underscore may also be an ordinary
    word. It is replaced only at the beginning of the message.
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

    It gets the line width when it is created. argparse creates a formatter for every argument that is added,
    and without a width each formatter would ask the terminal for it.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_find_line_width())

    def _split_lines(self, text: str, width: int) -> list[str]:
        import textwrap  # slow to import, and used only for help

        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


@cache
def _find_line_width() -> int:
    """Return the width of lines in the help: the variable COLUMNS or, if it is not set, the terminal's width,
    minus 2.
    """
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
    """Convert the text of a flag's value to an integer from 1 to MAX_INTEGER, for argparse."""
    return _check_range(parse_integer(text), text, 1)


def parse_not_negative(text: str) -> int:
    """Convert the text of a flag's value to an integer from 0 to MAX_INTEGER, for argparse."""
    return _check_range(parse_integer(text), text, 0)


def _check_range(number: int, text: str, least: int) -> int:
    """Return the number if it is from ``least`` to MAX_INTEGER. Raise ArgumentTypeError otherwise.

    text: the number as the user typed it, for the error message.
    """
    if not least <= number <= MAX_INTEGER:
        words = f"{least} or more" if number < least else f"at most {MAX_INTEGER}"
        raise argparse.ArgumentTypeError(f"{text!r:.80} is out of range, expected {words}")
    return number


def parse_integer(text: str) -> int:
    """Convert the text of a flag's value to an integer with at most MOST_DIGITS digits, for argparse."""
    try:
        if len(text) <= MOST_DIGITS:
            return int(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r:.80} is not an integer of at most {MOST_DIGITS} digits")


def parse_number(text: str) -> float:
    """Convert the text of a flag's value to a float, for argparse. Infinity is accepted, NaN is not."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if math.isnan(found):
        raise argparse.ArgumentTypeError(f"{text!r:.80} is not a number")
    return found


NUMBERS: dict[Any, Callable[[str], Any]] = {int: parse_integer, float: parse_number}
"""Functions that convert the text of a flag's value, by the type of the setting. Settings check their own
bounds.
"""


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
    """Add --overwrite, which allows the output to replace a file of another type.

    Input files are never replaced.
    """
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace an existing file even if it does not look like output of this command",
    )


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    """Add --dry-run, which prints what the command would write and writes nothing."""
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print what would be made and what would be kept, and write nothing",
    )
