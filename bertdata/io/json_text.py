"""Parsing of JSON from any source. All other modules of the project parse JSON through this one.

There are two modes. The strict mode is for settings, manifests and indexes: a number that the programs could
not use is an error. The lenient mode (``any_number``) is for records and logs, where an odd number in an
unused field must not make the text next to it unreadable.

``tests/house/test_foreign_files.py`` checks that no other module calls ``json.loads``.
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
"""Largest JSON file. The parsed values take about ten times as much memory."""


@dataclass(frozen=True, slots=True)
class NumberText:
    """A number in JSON that has too many digits for an int or is too large for a float, kept as text."""

    text: str

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def parse_json_text(data: bytes | str, *, any_number: bool = False) -> Any:
    """Return the value of a JSON text.

    Raises ValueError, with a message of one line, if it is not JSON in UTF-8.

    ValueError is also raised for values nested more than MOST_NESTED deep, for lone surrogates, and for
    numbers that are not finite floats: NaN, infinities, 1e999, and integers of more than MOST_DIGITS digits.

    any_number: accept numbers that are not finite floats. NaN and Infinity become floats, and any other such
        number becomes a NumberText.
    """
    text = decode_utf8(data)
    try:
        if any_number:
            value = json.loads(text, parse_int=_parse_any_integer, parse_float=_parse_any_float)
        else:
            value = json.loads(
                text, parse_int=_parse_integer, parse_float=_parse_float, parse_constant=_refuse_constant
            )
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    # Every level of nesting needs an opening bracket. So a text with few brackets cannot be too deep, and
    # the slow check is skipped.
    if text.count("[") + text.count("{") > MOST_NESTED and is_nested_too_deeply(value):
        raise ValueError(TOO_DEEP)
    if "\\ud" in text or "\\uD" in text:
        _refuse_surrogates(value)
    return value


def read_json(path: str | os.PathLike[str]) -> Any:
    """Return the value of a JSON file.

    Raises ValueError if the file is larger than 1 GiB, and wherever ``parse_json_text`` does.
    """
    return parse_json_text(read_bounded(os.fspath(path), MOST_BYTES))


def _parse_integer(text: str) -> int:
    """Return the integer. Raises ValueError if it has too many digits."""
    if len(text) > MOST_DIGITS:
        raise ValueError(f"an integer of {len(text.lstrip('-')):,} digits, expected at most {MOST_DIGITS}")
    return int(text)


def _parse_float(text: str) -> float:
    """Return the float. Raises ValueError if it overflows."""
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:20]} is larger than any number that can be stored")
    return number


def _refuse_constant(name: str) -> NoReturn:
    """Raise ValueError for NaN or an infinity."""
    raise ValueError(f"{name} is no JSON number")


def _parse_any_integer(text: str) -> int | NumberText:
    """Return the integer, or its text if it has too many digits."""
    return NumberText(text) if len(text) > MOST_DIGITS else int(text)


def _parse_any_float(text: str) -> float | NumberText:
    """Return the float, or its text if it overflows."""
    number = float(text)
    return NumberText(text) if math.isinf(number) else number


def _refuse_surrogates(value: Any) -> None:
    """Raise ValueError if a string in the value holds a lone surrogate, which UTF-8 cannot encode."""
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{error.object[error.start]!r} is half of a pair, and no character") from None
