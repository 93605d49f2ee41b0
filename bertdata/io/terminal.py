"""Printing. All output of the packages to a terminal goes through this module.

File names, words and ids may come from untrusted files. Control characters in them could command the
terminal, and a newline could imitate a message of this program. So both are printed as escapes.
"""

import json
import sys
from typing import Any, TextIO

_SHOWN_BEGINNING, _SHOWN_END = 2_000, 1_000
_JOINERS = "\u200c\u200d"


def escape_unprintable(text: str) -> str:
    """Return the text in one line, with every unprintable character as its Python escape.

    Printable characters are those of ``str.isprintable``, and the two zero-width joiners that some scripts
    need inside words. So control characters, line separators, marks that change the writing direction, and
    lone surrogates are escaped.
    """
    if text.isprintable():
        return text
    shown = (one.isprintable() or one in _JOINERS for one in text)
    return "".join(
        one if keep else one.encode("unicode_escape").decode() for one, keep in zip(text, shown, strict=True)
    )


def dump_printable_json(value: Any) -> str:
    """Return the value as one line of JSON, with every unprintable character as a JSON escape."""
    text = json.dumps(value, ensure_ascii=False)
    return "".join(one if escape_unprintable(one) == one else json.dumps(one)[1:-1] for one in text)


NOTHING_WRITTEN = "dry run: nothing was written"
"""Last line of every dry run."""


def say(*lines: str, to: TextIO | None = None) -> None:
    """Print the lines to standard output, or to the stream ``to``.

    They are written in a single call, so that lines of other processes do not come between them.
    """
    stream = to if to is not None else sys.stdout
    stream.write("".join(f"{_escape_unencodable(escape_unprintable(line), stream)}\n" for line in lines))
    stream.flush()


def say_text(text: str, *, to: TextIO | None = None) -> None:
    """Print a text of several lines.

    The caller must have escaped newlines in file names and words in the text.
    """
    say(*text.removesuffix("\n").split("\n"), to=to)


def say_error(*lines: str) -> None:
    """Print the lines to standard error. Very long lines are shortened."""
    say(*map(shorten, lines), to=sys.stderr)


def shorten(line: str) -> str:
    """Return the line with its middle left out if it is very long, for example because of a huge name.

    The beginning says where the error is, and the end what to do about it.
    """
    left_out = len(line) - _SHOWN_BEGINNING - _SHOWN_END
    if left_out <= 0:
        return line
    return f"{line[:_SHOWN_BEGINNING]} ... ({left_out:,} characters) ... {line[-_SHOWN_END:]}"


def format_duration(seconds: float) -> str:
    """Return a duration in one or two units: ``45 s``, ``12 min``, ``3 h 5 min``, ``2 d 4 h``."""
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{seconds:.0f} s"
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h"


def _escape_unencodable(line: str, stream: TextIO) -> str:
    """Return the line with escapes for characters that the stream's encoding lacks."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return line.encode(encoding, "backslashreplace").decode(encoding)
