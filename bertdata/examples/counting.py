"""Counting and summing up: columns as plain integers, means, shares and quantiles."""

from bisect import bisect_left
from collections import Counter
from itertools import accumulate
from operator import sub
from typing import Any

from bertdata.records import Buffer

QUANTILES = (5, 25, 50, 75, 95)
_DECIMALS = 6


def plain(column: Buffer) -> list[int]:
    """A column as Python's own integers, whatever kind of buffer it is."""
    values: list[int] = column.tolist()
    return values


def sizes(ends: list[int]) -> list[int]:
    """Items of each example, from the end offsets."""
    return list(map(sub, ends, [0, *ends[:-1]]))


def weighted_sum(counter: Counter[int]) -> int:
    """The sum of everything counted: each number as often as it came."""
    return sum(number * count for number, count in counter.items())


def quantile(counter: Counter[int], percent: int) -> int:
    """The smallest number that at least so many percent of everything counted do not exceed."""
    numbers = sorted(counter)
    below = list(accumulate(counter[number] for number in numbers))
    return numbers[bisect_left(below, -(-percent * below[-1] // 100))]


def spread(counter: Counter[int]) -> dict[str, Any]:
    """Least, mean and greatest number and the quantiles."""
    return {
        "min": min(counter),
        "mean": ratio(weighted_sum(counter), counter.total()),
        "max": max(counter),
        "quantiles": {str(percent): quantile(counter, percent) for percent in QUANTILES},
    }


def ratio(part: int, whole: int) -> float:
    """The part of the whole, rounded. 0 of nothing."""
    return rounded(part / whole) if whole else 0.0


def rounded(value: float) -> float:
    return round(value, _DECIMALS)
