"""Functions for computing statistics: they convert columns to integers and compute means, shares and
quantiles.
"""

from bisect import bisect_left
from collections import Counter
from itertools import accumulate
from operator import sub
from typing import Any

from bertdata.records import Buffer

QUANTILES = (5, 25, 50, 75, 95)
_DECIMALS = 6


def convert_to_ints(column: Buffer) -> list[int]:
    """Convert a column of a batch, which is a buffer of integers, to a list of Python integers."""
    values: list[int] = column.tolist()
    return values


def compute_sizes(ends: list[int]) -> list[int]:
    """Return the number of items of each example.

    ends: for each example, the index after its last item, counted over the whole batch.
    """
    return list(map(sub, ends, [0, *ends[:-1]]))


def sum_weighted(counter: Counter[int]) -> int:
    """Return the sum of all counted numbers: each number times how often it was counted."""
    return sum(number * count for number, count in counter.items())


def find_quantile(counter: Counter[int], percent: int) -> int:
    """Return the quantile of the counted numbers: the smallest number with ``percent`` percent of them at or
    below it.
    """
    numbers = sorted(counter)
    below = list(accumulate(counter[number] for number in numbers))
    return numbers[bisect_left(below, -(-percent * below[-1] // 100))]


def describe_distribution(counter: Counter[int]) -> dict[str, Any]:
    """Return the minimum, the mean, the maximum and some quantiles of the counted numbers, by name."""
    return {
        "min": min(counter),
        "mean": compute_ratio(sum_weighted(counter), counter.total()),
        "max": max(counter),
        "quantiles": {str(percent): find_quantile(counter, percent) for percent in QUANTILES},
    }


def compute_ratio(part: int, whole: int) -> float:
    """Return ``part / whole``, rounded to 6 decimals. If ``whole`` is 0, return 0."""
    return round_decimals(part / whole) if whole else 0.0


def round_decimals(value: float) -> float:
    """Round a number to 6 decimals, the precision of printed statistics."""
    return round(value, _DECIMALS)
