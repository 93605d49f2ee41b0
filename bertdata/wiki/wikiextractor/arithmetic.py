"""Limit the arithmetic of the package wikiextractor in ``{{#expr: ...}}``.

Without a limit, a power of a power would keep a worker busy for hours.

The package turns every error in an expression into text. A refusal is therefore stored in this module, and
read when the page is rendered. The kernel has the same limits (_native/wiki/wikiextractor/limits.h).
"""

import ast
import math
import operator
import threading
from types import ModuleType
from typing import Any

MAX_POWER_DIGITS = 5000
MAX_PLACES = 100_000


class _Refusal(threading.local):
    text = ""


_refusal = _Refusal()


def bound_arithmetic(extract: ModuleType) -> None:
    """Replace the functions for powers and rounding in the package's module ``extract`` by limited ones."""
    vars(extract)["_SHARP_EXPR_BINOPS"][ast.Pow] = _raise_to_limited_power
    vars(extract)["round"] = _round_with_limit


def take_refusal() -> str:
    """Return and clear the reason why a calculation was refused. The result is empty if none was refused."""
    text, _refusal.text = _refusal.text, ""
    return text


def _raise_to_limited_power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1 and exponent > 0:
        _check_digits(base, exponent)
    return operator.pow(base, exponent)


def _check_digits(base: int, exponent: int) -> None:
    # The exponent is capped because it may not fit a float. Even with the smallest base 2, where each step
    # adds 0.3 digits, four times the limit is refused.
    digits = min(exponent, 4 * MAX_POWER_DIGITS) * math.log10(abs(base))
    if digits > MAX_POWER_DIGITS:
        _refuse(f"asks #expr for a power of more than {MAX_POWER_DIGITS} digits")


def _round_with_limit(value: Any, places: int) -> Any:
    if isinstance(value, int) and places < -MAX_PLACES:
        _refuse(f"asks #expr to round to more than {MAX_PLACES} places")
    return round(value, places)


def _refuse(text: str) -> None:
    _refusal.text = text
    raise ValueError(text)
