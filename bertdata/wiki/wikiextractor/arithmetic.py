"""Limits the arithmetic of the package wikiextractor in ``{{#expr: ...}}``.

Without a limit, a power of a power would keep a worker busy for hours. If a calculation is refused, the
package turns the error into text of the article. The reason is therefore also stored in this module, where it
is found when the page has been rendered. The C++ kernel has the same limits
(_native/wiki/wikiextractor/limits.h).
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
    """Reason why the last calculation was refused, for each thread. Empty if none was refused."""

    text = ""


_refusal = _Refusal()


def limit_arithmetic(extract: ModuleType) -> None:
    """Replace the functions for powers and rounding in the package by functions with limits.

    extract: the module ``extract`` of the package.
    """
    vars(extract)["_SHARP_EXPR_BINOPS"][ast.Pow] = _raise_to_limited_power
    vars(extract)["round"] = _round_with_limit


def pop_refusal() -> str:
    """Return the reason why a calculation was refused, and forget it.

    The result is empty if none was refused.
    """
    text, _refusal.text = _refusal.text, ""
    return text


def _raise_to_limited_power(base: Any, exponent: Any) -> Any:
    """Return a power. If it would have too many digits, store the reason and raise an error."""
    if isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1 and exponent > 0:
        _check_digits(base, exponent)
    return operator.pow(base, exponent)


def _check_digits(base: int, exponent: int) -> None:
    """Raise an error if a power of integers would have more than MAX_POWER_DIGITS digits."""
    # The exponent is limited, because it may be too large for a float. This does not change the result of the
    # test: even for the smallest base 2, each step of the exponent adds 0.3 digits, so a power with four
    # times the limit as its exponent is refused.
    digits = min(exponent, 4 * MAX_POWER_DIGITS) * math.log10(abs(base))
    if digits > MAX_POWER_DIGITS:
        _refuse(f"asks #expr for a power of more than {MAX_POWER_DIGITS} digits")


def _round_with_limit(value: Any, places: int) -> Any:
    """Round a number. For too many places it stores the reason for the log, and raises an error."""
    if isinstance(value, int) and places < -MAX_PLACES:
        _refuse(f"asks #expr to round to more than {MAX_PLACES} places")
    return round(value, places)


def _refuse(text: str) -> None:
    """Store the reason why a calculation is refused, and raise an error."""
    _refusal.text = text
    raise ValueError(text)
