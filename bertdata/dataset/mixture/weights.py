"""Parser of the weights of datasets in a mixture, such as ``A*0.7+B*0.3``, which become integers."""

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from bertdata.errors import MissingInputError, SettingsError
from bertdata.io import storage
from bertdata.io.name_lists import path_exists, split_names
from bertdata.io.patterns import expand_patterns
from bertdata.io.real_paths import find_repeated

MAX_WEIGHT_SUM = 1_000_000
"""Largest sum of the integer weights. It is limited because as many turns are kept in memory."""

Weight = int | float | str | Fraction | Decimal
"""Types of a weight that a user can give. The float 0.7 is taken as exactly seven tenths."""

_NUMBER = r"-?(?:\d+\.?\d*|\.\d+)(?:[eE]-?\d{1,2})?|nan|inf"
_WEIGHTED = re.compile(rf"(.*\S)(\s*)\*(\s*)({_NUMBER})", re.ASCII | re.DOTALL)


def split_weighted(paths: str) -> list[tuple[str, str | None]]:
    """Split a text of paths at commas or ``+`` signs.

    Return each path with its weight, which follows the last ``*``.

    The weight is None if the path has none. Text that is the path of an existing file is not split, even if
    it contains a comma or ``+``. ``part-*1`` is a glob pattern if it matches a file and no path ``part-``
    exists. If there is a space next to the star, as in ``part-1? * 0.5``, the number is always a weight.
    """
    return [_split_weight(path.strip()) for path in split_names(paths, ",+", _is_existing_path)]


def split_paths(paths: str) -> list[str]:
    """Return the paths of ``split_weighted`` without their weights."""
    return [path for path, _ in split_weighted(paths)]


def _is_existing_path(path: str) -> bool:
    """Return True if the path exists, either as it is or without the weight at its end."""
    weighted = _WEIGHTED.fullmatch(path.strip())
    return path_exists(path.strip()) or (weighted is not None and path_exists(weighted[1]))


def _split_weight(path: str) -> tuple[str, str | None]:
    """Split the weight from the end of a path. The weight is None if the path has none."""
    found = _WEIGHTED.fullmatch(path.strip())
    if found is None:
        return path, None
    base, *spaces, weight = found.groups()
    is_pattern = not any(spaces) and not storage.exists(base) and _matches_files(path)
    return (path, None) if is_pattern else (base, weight)


def _matches_files(pattern: str) -> bool:
    """Return True if the path is a glob pattern that matches a file."""
    try:
        return bool(expand_patterns([pattern]))
    except MissingInputError:
        return False


def find_weights(paths: str) -> tuple[int, ...]:
    """Return the integer weights in a text of paths, or () if no path has a weight.

    Raises SettingsError if some paths have a weight and others have none.
    """
    found = split_weighted(paths)
    without = [path for path, weight in found if weight is None]
    if len(without) == len(found):
        return ()
    if without:
        raise SettingsError(f"{paths}: {without[0]} has no weight; give each dataset one, as A*0.7+B*0.3")
    return make_whole_weights([(path, str(weight)) for path, weight in found])


def make_whole_weights(sources: Sequence[tuple[str, Weight]]) -> tuple[int, ...]:
    """Return the smallest integers that have the same ratio as the weights.

    For example, 0.7 and 0.3 give 7 and 3.

    sources: name and weight of each source.

    Raises SettingsError for a weight that is not a positive number, for a source that is named twice, and for
    weights with so many digits that the sum of the integers is above MAX_WEIGHT_SUM.
    """
    names = [name for name, _ in sources]
    if (repeated := find_repeated(names)) is not None:
        first, second = repeated
        other = "" if first == second else f", as {second} too"
        raise SettingsError(f"{first}: comes twice in the mixture{other}; give it once, with one weight")
    found = [_parse_weight(name, weight) for name, weight in sources]
    parts = math.lcm(*(weight.denominator for weight in found))
    whole = [int(weight * parts) for weight in found]
    common = math.gcd(*whole)
    weights = tuple(weight // common for weight in whole)
    if sum(weights) > MAX_WEIGHT_SUM:
        raise SettingsError(
            f"the weights of {', '.join(names)} are {sum(weights)} parts as whole numbers, at most "
            f"{MAX_WEIGHT_SUM} are allowed; give weights of fewer digits"
        )
    return weights


def _parse_weight(name: str, weight: Weight) -> Fraction:
    """Return the weight as a fraction. Raises SettingsError unless it is a positive number."""
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
