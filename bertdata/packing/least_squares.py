"""Plan packed rows by non-negative least squares, as Habana's and Graphcore's programs do (Krell et al.
2021).

This method is offered for comparison with the published algorithm. SciPy's solution may differ in its last
digits between versions, which can change a plan by a few rows.
"""

import numpy as np

from bertdata.errors import SettingsError
from bertdata.packing.pack_plan import Histogram, PackPlan
from bertdata.packing.patterns import (
    MAX_PATTERN_LENGTHS,
    fill_slots,
    list_full_patterns,
    read_pattern_lengths,
)
from bertdata.packing.scipy_import import load_scipy

ROUNDS = 20
ENOUGH = 100
"""The rounds stop when fewer examples than this are without a slot. A slot is a place for an example in a
row.
"""
SHORT = 8
"""Lengths up to this one get the small weight SHORT / (2 * max_seq_length) in the least squares.

An empty slot of such a length wastes only little space, so it matters less whether such slots are as many as
the examples of their length.
"""
MAX_ROW_LENGTH = 512
"""The longest row that this method accepts. Memory and time grow with the cube of the row length."""


def pack_by_least_squares(histogram: Histogram, most: int) -> PackPlan:
    """Choose full patterns whose slots come closest to the numbers of examples of each length.

    A full pattern is a combination of slots (places for examples) whose lengths fill a row. An example that
    gets no slot has a row to itself. Surplus slots stay empty, although the linear program would fill them
    with shorter examples. Raises SettingsError if ``most`` or the row length is too large for this method.

    histogram: number of examples by length.
    most: most examples in a row.
    """
    max_seq_length = len(histogram) - 1
    if most > MAX_PATTERN_LENGTHS:
        raise SettingsError(
            f"method is nnls and max_sequences_per_pack {most}, at most {MAX_PATTERN_LENGTHS} allowed"
        )
    if max_seq_length > MAX_ROW_LENGTH:
        raise SettingsError(
            f"method is nnls and rows have {max_seq_length} positions, at most {MAX_ROW_LENGTH} allowed"
        )
    patterns = list_full_patterns(max_seq_length, most)
    # matrix[l - 1, p] is the number of slots of length l in pattern p. For example, the pattern (2, 3, 3) has
    # 1 in row 1 and 2 in row 2 of its column. matrix @ rows_per_pattern is then the number of slots of each
    # length.
    matrix = np.zeros((max_seq_length, len(patterns)))
    for place in range(patterns.shape[1]):
        rows = np.flatnonzero(patterns[:, place])
        matrix[patterns[rows, place] - 1, rows] += 1
    weights = np.ones(max_seq_length)
    weights[:SHORT] = SHORT / (2 * max_seq_length)
    weights = np.sqrt(weights)
    numbers, left = np.zeros(len(patterns)), histogram[1:].astype(np.float64)
    nnls = load_scipy("optimize").nnls
    # Each round computes rows for the examples that have no slot yet. Numbers of rows below 2 are rounded to
    # the nearest integer, larger ones down, so a round rarely makes many more slots than there are examples.
    for _ in range(ROUNDS):
        solution, _ = nnls(weights[:, None] * matrix, weights * np.maximum(left, 0))
        rounded = np.where(solution < 2, np.rint(solution), np.floor(solution))
        numbers += rounded
        left -= matrix @ rounded
        if np.maximum(left, 0).sum() < ENOUGH or not rounded.any():
            break
    slots = {read_pattern_lengths(patterns[index]): int(numbers[index]) for index in np.flatnonzero(numbers)}
    return fill_slots(slots, histogram, 1, hand_down=False)
