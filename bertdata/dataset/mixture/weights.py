"""Weights of a mixture's sources, as ``A*0.7+B*0.3`` gives them, and as whole numbers."""

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from bertdata.errors import MissingInputError, SettingsError
from bertdata.io import storage
from bertdata.io.name_lists import path_exists, split_names
from bertdata.io.patterns import expand
from bertdata.io.real_paths import find_repeated

MOST_PARTS = 1_000_000
"""The largest sum of whole weights: the turns of so many examples are kept."""

Weight = int | float | str | Fraction | Decimal
"""A weight as it is given. A float is the decimal number that it is printed as."""

_NUMBER = r"-?(?:\d+\.?\d*|\.\d+)(?:[eE]-?\d{1,2})?|nan|inf"
_WEIGHTED = re.compile(rf"(.*\S)(\s*)\*(\s*)({_NUMBER})", re.ASCII | re.DOTALL)


def split_weighted(paths: str) -> list[tuple[str, str | None]]:
    """Return the paths that commas or ``+`` separate, each with the weight behind its last ``*``, if any.

    A comma or ``+`` in a path that exists separates nothing, as split_names says. ``part-*1`` is a pattern
    where there is no path ``part-`` but the pattern finds one; ``part-1? * 0.5``, with a space beside the
    star, is always a weight.
    """
    return [_split_weight(path.strip()) for path in split_names(paths, ",+", _is_there)]


def split_paths(paths: str) -> list[str]:
    """The paths of ``split_weighted`` without their weights."""
    return [path for path, _ in split_weighted(paths)]


def _is_there(path: str) -> bool:
    """Return True for a path that exists, with its weight or without."""
    weighted = _WEIGHTED.fullmatch(path.strip())
    return path_exists(path.strip()) or (weighted is not None and path_exists(weighted[1]))


def _split_weight(path: str) -> tuple[str, str | None]:
    found = _WEIGHTED.fullmatch(path.strip())
    if found is None:
        return path, None
    base, *spaces, weight = found.groups()
    is_pattern = not any(spaces) and not storage.exists(base) and _finds_files(path)
    return (path, None) if is_pattern else (base, weight)


def _finds_files(pattern: str) -> bool:
    try:
        return bool(expand([pattern]))
    except MissingInputError:
        return False


def find_weights(paths: str) -> tuple[int, ...]:
    """The whole weights of the paths, () where none has one. SettingsError where only some have one."""
    found = split_weighted(paths)
    without = [path for path, weight in found if weight is None]
    if len(without) == len(found):
        return ()
    if without:
        raise SettingsError(f"{paths}: {without[0]} has no weight; give each dataset one, as A*0.7+B*0.3")
    return whole_weights([(path, str(weight)) for path, weight in found])


def whole_weights(sources: Sequence[tuple[str, Weight]]) -> tuple[int, ...]:
    """The smallest whole numbers in the ratio of the sources' weights.

    SettingsError for a weight that is no positive number, a source that comes twice, and weights of so many
    digits that the whole numbers add up to more than MOST_PARTS.
    """
    names = [name for name, _ in sources]
    if (repeated := find_repeated(names)) is not None:
        first, second = repeated
        other = "" if first == second else f", as {second} too"
        raise SettingsError(f"{first}: comes twice in the mixture{other}; give it once, with one weight")
    found = [_positive(name, weight) for name, weight in sources]
    parts = math.lcm(*(weight.denominator for weight in found))
    whole = [int(weight * parts) for weight in found]
    common = math.gcd(*whole)
    weights = tuple(weight // common for weight in whole)
    if sum(weights) > MOST_PARTS:
        raise SettingsError(
            f"the weights of {', '.join(names)} are {sum(weights)} parts as whole numbers, at most "
            f"{MOST_PARTS} are allowed; give weights of fewer digits"
        )
    return weights


def _positive(name: str, weight: Weight) -> Fraction:
    problem = SettingsError(f"{name}: its weight is {weight!s}, expected a positive number, as 0.7")
    if isinstance(weight, bool) or not isinstance(weight, int | float | str | Fraction | Decimal):
        raise problem
    if isinstance(weight, str) and not re.fullmatch(_NUMBER, weight, re.ASCII):
        raise problem
    try:
        found = Fraction(str(weight))
    except (ValueError, ZeroDivisionError):
        raise problem from None
    if found <= 0:
        raise problem
    return found
