"""The linear program of packing, solved by HiGHS in SciPy.

A variable x for each pattern of a full row, and y for each length l from 2 on: slots of length l that are
handed down to length l - 1. Minimise the number of rows, sum(x), so that for each length l

    slots of l in the patterns + y[l + 1] - y[l] >= examples of length l

Patterns of rows that are not full need no variable: a longer slot may hold a shorter example.
"""

from typing import Any

import numpy as np

from bertdata.errors import SettingsError
from bertdata.packing.longest_first import pack_longest_first
from bertdata.packing.pack_plan import Histogram, PackPlan
from bertdata.packing.patterns import LONGEST_SUMS, Patterns, fill_slots, full_patterns, lengths_of
from bertdata.packing.scipy_import import load_scipy

LONGEST_ROW = 1024
"""Row length up to which the program is solved: it has the square of that, by 12, variables."""

COST = 1000.0
"""Cost of a row: HiGHS's tolerances are absolute, so large costs make them fine."""
TIE_BREAK = 1e-5
"""By how much rows of different patterns may differ in cost, so that one solution alone is the best."""
NEARLY_WHOLE = 1e-3
"""A solution that lies so little below a whole number is that number."""


def pack_by_linear_program(histogram: Histogram, most: int) -> PackPlan:
    """The program's rows, rounded down. Examples without a slot are packed greedily.

    For more than three a row the patterns are those of full rows of up to three, and all that
    longest-pack-first makes of up to ``most``.
    """
    patterns = _patterns(histogram, most)
    costs = COST * (1 + TIE_BREAK * _fractions(len(patterns)))
    numbers = np.floor(_solve(histogram, patterns, costs) + NEARLY_WHOLE).astype(np.int64)
    used = np.flatnonzero(numbers)
    slots = {lengths_of(patterns[index]): int(numbers[index]) for index in used}
    return fill_slots(slots, histogram, most, hand_down=True)


def fewest_rows(histogram: Histogram, most: int) -> float:
    """A bound: no packing of at most ``most`` examples a row has fewer rows.

    Up to three a row, and rows up to LONGEST_ROW, the program's own least number; else what follows
    from tokens, examples, and those longer than half a row.
    """
    max_seq_length = len(histogram) - 1
    if most <= LONGEST_SUMS and max_seq_length <= LONGEST_ROW:
        patterns = full_patterns(max_seq_length, most)
        return float(_solve(histogram, patterns, np.full(len(patterns), COST)).sum())
    tokens = int((histogram * np.arange(len(histogram))).sum())
    longer = int(histogram[max_seq_length // 2 + 1 :].sum())
    return max(tokens / max_seq_length, int(histogram.sum()) / most, longer)


def _patterns(histogram: Histogram, most: int) -> Patterns:
    """The patterns that the program may use."""
    max_seq_length = len(histogram) - 1
    if max_seq_length > LONGEST_ROW:
        raise SettingsError(
            f"method is lp and rows have {max_seq_length} positions, at most {LONGEST_ROW} allowed; "
            "use --method lpfhp"
        )
    full = full_patterns(max_seq_length, most)
    if most <= LONGEST_SUMS:
        return full
    greedy = [lengths for lengths, _ in pack_longest_first(histogram, most).rows_by_lengths]
    wide = np.zeros((len(full) + len(greedy), most), np.int64)
    wide[: len(full), -LONGEST_SUMS:] = full
    for row, lengths in enumerate(greedy, len(full)):
        wide[row, most - len(lengths) :] = lengths
    return np.unique(wide, axis=0)


def _fractions(number: int) -> Any:
    """Fixed values from 0 to 1 without any pattern: the first numbers, mixed as SplitMix64 does."""
    mixed = np.arange(1, number + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) / 2**53


def _solve(histogram: Histogram, patterns: Patterns, costs: Any) -> Any:
    """The number of rows of each pattern, not rounded."""
    optimize, sparse = load_scipy("optimize"), load_scipy("sparse")
    lengths, number = len(histogram) - 1, len(patterns)
    handed = np.arange(1, lengths)  # column ``number + l - 1`` takes from length l + 1 and gives to l
    row, place = np.nonzero(patterns)
    columns = np.concatenate([row, number + handed - 1, number + handed - 1])
    rows = np.concatenate([patterns[row, place] - 1, handed, handed - 1])
    values = np.concatenate([np.full(len(row), -1.0), np.ones(len(handed)), -np.ones(len(handed))])
    matrix = sparse.coo_matrix((values, (rows, columns)), shape=(lengths, number + len(handed))).tocsc()
    found = optimize.linprog(
        np.concatenate([costs, np.zeros(len(handed))]),
        A_ub=matrix,
        b_ub=-histogram[1:].astype(np.float64),
        bounds=(0, None),
        method="highs-ipm",
        options={"dual_feasibility_tolerance": 1e-9, "primal_feasibility_tolerance": 1e-9},
    )
    assert found.status == 0, found.message  # every histogram has a solution: each example alone
    return found.x[:number]
