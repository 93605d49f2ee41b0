"""Packing by non-negative least squares, as Habana's and Graphcore's programs do (Krell et al. 2021).

It is offered for comparison with the published algorithm. SciPy's solution may differ in the last digits
between versions, which can change a plan by a few rows.
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
"""The method stops when fewer examples than this have no slot (place in a row) yet."""
SHORT = 8
"""Lengths up to this one get the weight SHORT / (2 * max_seq_length) in the least squares. Empty slots of
these lengths waste only little space.
"""
MAX_ROW_LENGTH = 512
"""Longest row that the method accepts. Memory and time grow with the cube of the row length."""


def pack_by_least_squares(histogram: Histogram, most: int) -> PackPlan:
    """Choose rows of full patterns whose slots match the histogram best. Each remaining example gets a row
    alone.

    Surplus slots stay empty. (The linear program fills them with shorter examples.) SettingsError if ``most``
    or the row length is too large.
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
    # matrix[l - 1, p]: how many slots of length l pattern p has. The pattern (2, 3, 3) adds 1 in row 1 and 2
    # in row 2 of its column. matrix @ rows_per_pattern is then the number of slots of each length.
    matrix = np.zeros((max_seq_length, len(patterns)))
    for place in range(patterns.shape[1]):
        rows = np.flatnonzero(patterns[:, place])
        matrix[patterns[rows, place] - 1, rows] += 1
    weights = np.ones(max_seq_length)
    weights[:SHORT] = SHORT / (2 * max_seq_length)
    weights = np.sqrt(weights)
    numbers, left = np.zeros(len(patterns)), histogram[1:].astype(np.float64)
    nnls = load_scipy("optimize").nnls
    # Each round fits the examples that are still without a slot. Small values are rounded to the nearest
    # integer, larger ones down, so a round rarely makes many more slots than there are examples.
    for _ in range(ROUNDS):
        solution, _ = nnls(weights[:, None] * matrix, weights * np.maximum(left, 0))
        rounded = np.where(solution < 2, np.rint(solution), np.floor(solution))
        numbers += rounded
        left -= matrix @ rounded
        if np.maximum(left, 0).sum() < ENOUGH or not rounded.any():
            break
    slots = {read_pattern_lengths(patterns[index]): int(numbers[index]) for index in np.flatnonzero(numbers)}
    return fill_slots(slots, histogram, 1, hand_down=False)
