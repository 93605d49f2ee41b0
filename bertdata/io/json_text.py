"""JSON from files that anybody may have written."""

import json
from typing import Any, NoReturn

_MOST_DIGITS = 640
"""Digits of a whole number that every Python reads, whatever ``PYTHONINTMAXSTRDIGITS`` says."""


def parse_json_text(data: bytes | str, *, any_number: bool = False) -> Any:
    """The JSON value. ValueError in one line for what is none.

    Refused too: NaN and infinities, values nested so deeply that nobody could read them, text that no
    file can hold (half of a surrogate pair). any_number: take NaN, infinities and whole numbers of any length
    too, for readers of the texts beside them.
    """
    try:
        if any_number:
            value = json.loads(data, parse_int=_number)
        else:
            value = json.loads(data, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None
    escape = "\\ud" if isinstance(data, str) else b"\\ud"
    if escape in data.lower():  # type: ignore[operator]
        _refuse_surrogates(value)
    return value


def _number(digits: str) -> int | float:
    """The whole number. One of so many digits that Python refuses it becomes a fraction, perhaps infinite."""
    return int(digits) if len(digits) < _MOST_DIGITS else float(digits)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _refuse_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{error.object[error.start]!r} is half of a pair, and no character") from None
