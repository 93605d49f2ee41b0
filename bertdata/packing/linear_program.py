"""Plan packed rows by a linear program, which HiGHS solves through SciPy.

A full pattern is a combination of lengths that fills a row. Each of its lengths is a slot for an example. The
variables are x[p], the number of rows with full pattern p, and y[l] for each length l from 2 on, the number
of slots of length l that are used for length l - 1. The program minimises the number of rows, sum(x), so that
for each length l

    slots of l in the patterns + y[l + 1] - y[l] >= examples of length l

Rows that are not full need no variables, because a slot may hold a shorter example.
"""

from typing import Any

import numpy as np

from bertdata.errors import SettingsError
from bertdata.packing.longest_first import pack_longest_first
from bertdata.packing.pack_plan import Histogram, PackPlan
from bertdata.packing.patterns import (
    MAX_PATTERN_LENGTHS,
    Patterns,
    fill_slots,
    list_full_patterns,
    read_pattern_lengths,
)
from bertdata.packing.scipy_import import load_scipy

MAX_ROW_LENGTH = 1024
"""The longest row that this method accepts. The program has about max_seq_length ** 2 / 12 variables."""

COST = 1000.0
"""Cost of a row in the linear program.

The tolerances of the solver HiGHS are absolute, so a larger cost makes the solution relatively more exact.
"""
TIE_BREAK = 1e-5
"""The costs of two patterns differ at most by this share.

The small differences make the optimum unique, so that every machine finds the same plan.
"""
NEARLY_WHOLE = 1e-3
"""A number of rows that is below an integer by at most this much is rounded up to the integer.

Only rounding errors of the solver make it smaller.
"""


def pack_by_linear_program(histogram: Histogram, most: int) -> PackPlan:
    """Plan packed rows with the linear program.

    The numbers of rows in its solution are rounded down. The examples that are left are packed longest first.
    If ``most`` is above three, the program may use all full rows of up to three lengths, and all combinations
    of lengths that longest-first packing makes. Raises SettingsError if rows are too long for this method.

    histogram: number of examples by length.
    most: most examples in a row.
    """
    patterns = _choose_patterns(histogram, most)
    costs = COST * (1 + TIE_BREAK * _make_random_fractions(len(patterns)))
    numbers = np.floor(_solve_program(histogram, patterns, costs) + NEARLY_WHOLE).astype(np.int64)
    used = np.flatnonzero(numbers)
    slots = {read_pattern_lengths(patterns[index]): int(numbers[index]) for index in used}
    return fill_slots(slots, histogram, most, hand_down=True)


def bound_rows_below(histogram: Histogram, most: int) -> float:
    """Return a number of rows below which no packing is possible, with at most ``most`` examples per row.

    If the linear program covers all combinations of lengths, this is its optimum. Otherwise three numbers
    give bounds, of which the largest is returned: the tokens, the examples, and the examples longer than half
    a row.
    """
    max_seq_length = len(histogram) - 1
    if most <= MAX_PATTERN_LENGTHS and max_seq_length <= MAX_ROW_LENGTH:
        patterns = list_full_patterns(max_seq_length, most)
        return float(_solve_program(histogram, patterns, np.full(len(patterns), COST)).sum())
    tokens = int((histogram * np.arange(len(histogram))).sum())
    # Two examples longer than half a row never fit into the same row, so each needs its own.
    longer = int(histogram[max_seq_length // 2 + 1 :].sum())
    return max(tokens / max_seq_length, int(histogram.sum()) / most, longer)


def _choose_patterns(histogram: Histogram, most: int) -> Patterns:
    """Return the combinations of lengths that the linear program may use.

    Raises SettingsError if rows are too long.
    """
    max_seq_length = len(histogram) - 1
    if max_seq_length > MAX_ROW_LENGTH:
        raise SettingsError(
            f"method is lp and rows have {max_seq_length} positions, at most {MAX_ROW_LENGTH} allowed; "
            "use --method lpfhp"
        )
    full = list_full_patterns(max_seq_length, most)
    if most <= MAX_PATTERN_LENGTHS:
        return full
    greedy = [lengths for lengths, _ in pack_longest_first(histogram, most).rows_by_lengths]
    wide = np.zeros((len(full) + len(greedy), most), np.int64)
    wide[: len(full), -MAX_PATTERN_LENGTHS:] = full
    for row, lengths in enumerate(greedy, len(full)):
        wide[row, most - len(lengths) :] = lengths
    return np.unique(wide, axis=0)


def _make_random_fractions(number: int) -> Any:
    """Return ``number`` pseudo-random values from 0 to 1, which are always the same.

    They are the hash SplitMix64 of 1, 2, 3 and so on.
    """
    mixed = np.arange(1, number + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) / 2**53


def _solve_program(histogram: Histogram, patterns: Patterns, costs: Any) -> Any:
    """Solve the linear program. Return for each pattern the number of rows with it, not rounded.

    costs: cost of a row with each pattern.
    """
    optimize, sparse = load_scipy("optimize"), load_scipy("sparse")
    # HiGHS wants A x <= b, so the inequality of the module's docstring is negated. Row l - 1 of the matrix A
    # is the inequality of length l. Its first ``number`` columns belong to x, the others to y.
    lengths, number = len(histogram) - 1, len(patterns)
    # Column ``number`` + l - 1 belongs to y[l + 1], the slots of length l + 1 that are used for length l.
    handed = np.arange(1, lengths)
    row, place = np.nonzero(patterns)
    # The matrix is sparse and made from triples (row, column, value). coo_matrix adds up triples of the same
    # place, so a pattern with two slots of one length gets -2.
    columns = np.concatenate([row, number + handed - 1, number + handed - 1])
    rows = np.concatenate([patterns[row, place] - 1, handed, handed - 1])
    values = np.concatenate([np.full(len(row), -1.0), np.ones(len(handed)), -np.ones(len(handed))])
    matrix = sparse.coo_matrix((values, (rows, columns)), shape=(lengths, number + len(handed))).tocsc()
    # Small tolerances make sure that rounding down gives the same plan on every machine.
    found = optimize.linprog(
        np.concatenate([costs, np.zeros(len(handed))]),
        A_ub=matrix,
        b_ub=-histogram[1:].astype(np.float64),
        bounds=(0, None),
        method="highs-ipm",
        options={"dual_feasibility_tolerance": 1e-9, "primal_feasibility_tolerance": 1e-9},
    )
    # every histogram has a solution, for example each example in its own row
    assert found.status == 0, found.message
    return found.x[:number]
