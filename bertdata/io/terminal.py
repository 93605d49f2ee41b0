"""Lines for a person: the one place where the packages print.

Names, words and ids come from files that anybody may have made. A terminal obeys control characters in
them, and a newline would forge a line of ours, so both are shown as escapes.
"""

import json
import sys
from typing import Any, TextIO

_SHOWN_BEGINNING, _SHOWN_END = 2_000, 1_000
_JOINERS = "\u200c\u200d"


def printable(text: str) -> str:
    """The text in one line, every character that is not printable as its Python escape.

    Printable is what str.isprintable has, and the two joiners that some scripts need within words: no
    controls, no line separators, no marks that turn the direction of writing, no halves of surrogate pairs.
    """
    if text.isprintable():
        return text
    shown = (one.isprintable() or one in _JOINERS for one in text)
    return "".join(
        one if keep else one.encode("unicode_escape").decode() for one, keep in zip(text, shown, strict=True)
    )


def printable_json(value: Any) -> str:
    """The value as JSON in one line, every character that is not printable as JSON's own escape."""
    text = json.dumps(value, ensure_ascii=False)
    return "".join(one if printable(one) == one else json.dumps(one)[1:-1] for one in text)


NOTHING_WRITTEN = "dry run: nothing was written"
"""The last line of every dry run."""


def say(*lines: str, to: TextIO | None = None) -> None:
    """Print the lines on standard output, or on ``to``, in one write: other processes write there too."""
    stream = to if to is not None else sys.stdout
    stream.write("".join(f"{_encodable(printable(line), stream)}\n" for line in lines))
    stream.flush()


def say_text(text: str, *, to: TextIO | None = None) -> None:
    """Print a text of several lines, whose line ends are ours: no name in it may hold any."""
    say(*text.removesuffix("\n").split("\n"), to=to)


def say_error(*lines: str) -> None:
    """Print the lines on standard error, the middle of a very long one left out."""
    say(*map(shortened, lines), to=sys.stderr)


def shortened(line: str) -> str:
    """Return the line without its middle where that is long: a name of a file's may have a million letters.

    Its beginning tells where the fault is, its end what to do.
    """
    left_out = len(line) - _SHOWN_BEGINNING - _SHOWN_END
    if left_out <= 0:
        return line
    return f"{line[:_SHOWN_BEGINNING]} ... ({left_out:,} characters) ... {line[-_SHOWN_END:]}"


def in_words(seconds: float) -> str:
    """A time in one or two units: ``45 s``, ``12 min``, ``3 h 5 min``, ``2 d 4 h``."""
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


def _encodable(line: str, stream: TextIO) -> str:
    """The line as a terminal of another encoding can show it."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return line.encode(encoding, "backslashreplace").decode(encoding)
