"""JSON from files that anybody may have written: the one place of the project that parses it.

Strict, for settings, manifests and indexes: a value that a program of ours could not use is refused.
Lenient, for records and logs: a number that nobody asks for is no fault of the text next to it.
``tests/house/test_foreign_files.py`` looks for other readers.
"""

import json
import math
import os
from dataclasses import dataclass
from typing import Any, NoReturn

from bertdata.io.foreign_text import (
    MOST_DIGITS,
    MOST_NESTED,
    TOO_DEEP,
    decode_utf8,
    is_nested_too_deeply,
    read_bounded,
)

MOST_BYTES = 1 << 30
"""The largest JSON file. Its values take some ten times as much memory."""


@dataclass(frozen=True, slots=True)
class NumberText:
    """The text of a number that Python does not hold: of too many digits, or beyond all floats."""

    text: str

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def parse_json_text(data: bytes | str, *, any_number: bool = False) -> Any:
    """Return the JSON value. ValueError, in one line, for a text that is not JSON in UTF-8.

    Also refused: values nested more than MOST_NESTED deep, half of a surrogate pair, and numbers that are no
    float (NaN, infinities, 1e999, integers of more than MOST_DIGITS digits).

    any_number: such numbers are accepted. NaN and Infinity become floats, the others a NumberText.
    """
    text = decode_utf8(data)
    try:
        if any_number:
            value = json.loads(text, parse_int=_any_integer, parse_float=_any_float)
        else:
            value = json.loads(text, parse_int=_integer, parse_float=_float, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    # Each level has a bracket of its own, so that few brackets need no second look.
    if text.count("[") + text.count("{") > MOST_NESTED and is_nested_too_deeply(value):
        raise ValueError(TOO_DEEP)
    if "\\ud" in text or "\\uD" in text:
        _refuse_surrogates(value)
    return value


def read_json(path: str | os.PathLike[str]) -> Any:
    """Return the value of a JSON file. ValueError as from ``parse_json_text``, and for a file over 1 GiB."""
    return parse_json_text(read_bounded(os.fspath(path), MOST_BYTES))


def _integer(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"an integer of {len(text.lstrip('-')):,} digits, expected at most {MOST_DIGITS}")
    return int(text)


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:20]} is larger than any number that can be stored")
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _any_integer(text: str) -> int | NumberText:
    return NumberText(text) if len(text) > MOST_DIGITS else int(text)


def _any_float(text: str) -> float | NumberText:
    number = float(text)
    return NumberText(text) if math.isinf(number) else number


def _refuse_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{error.object[error.start]!r} is half of a pair, and no character") from None
