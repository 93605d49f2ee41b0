"""JSON from files that anybody may have written."""

import json
from typing import Any, NoReturn


def parse_json_text(data: bytes | str) -> Any:
    """The JSON value. ValueError in one line for what is none.

    Refused too: NaN and infinities, values nested so deeply that nobody could read them, text that no
    file can hold (half of a surrogate pair).
    """
    try:
        value = json.loads(data, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None
    escape = "\\ud" if isinstance(data, str) else b"\\ud"
    if escape in data.lower():  # type: ignore[operator]
        _refuse_surrogates(value)
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _refuse_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{error.object[error.start]!r} is half of a pair, and no character") from None
