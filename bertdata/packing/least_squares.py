"""Packing by non-negative least squares, as Habana's and Graphcore's programs do (Krell et al. 2021).

The published algorithm, for those who want it; SciPy's solution may differ between its versions in the
last digits, and then a plan by a few rows.
"""

import numpy as np

from bertdata.errors import SettingsError
from bertdata.packing.pack_plan import Histogram, PackPlan
from bertdata.packing.patterns import LONGEST_SUMS, fill_slots, full_patterns, lengths_of
from bertdata.packing.scipy_import import load_scipy

ROUNDS = 20
ENOUGH = 100
"""Examples left below which no further round is made."""
SHORT = 8
"""Lengths up to this weigh SHORT / (2 S): their padding costs little."""
LONGEST_ROW = 512
"""Row length up to which it is tried: matrix and time grow with its third power."""


def pack_by_least_squares(histogram: Histogram, most: int) -> PackPlan:
    """Rows of full patterns that come nearest to the histogram. What they cannot hold is alone in its row.

    Each round solves for the examples that are left, and rounds: values below 2 to the nearest number,
    others down. Slots of examples that there are not stay empty.
    """
    max_seq_length = len(histogram) - 1
    if most > LONGEST_SUMS:
        raise SettingsError(
            f"method is nnls and max_sequences_per_pack {most}, at most {LONGEST_SUMS} allowed"
        )
    if max_seq_length > LONGEST_ROW:
        raise SettingsError(
            f"method is nnls and rows have {max_seq_length} positions, at most {LONGEST_ROW} allowed"
        )
    patterns = full_patterns(max_seq_length, most)
    matrix = np.zeros((max_seq_length, len(patterns)))
    for place in range(patterns.shape[1]):
        rows = np.flatnonzero(patterns[:, place])
        matrix[patterns[rows, place] - 1, rows] += 1
    weights = np.ones(max_seq_length)
    weights[:SHORT] = SHORT / (2 * max_seq_length)
    weights = np.sqrt(weights)
    numbers, left = np.zeros(len(patterns)), histogram[1:].astype(np.float64)
    nnls = load_scipy("optimize").nnls
    for _ in range(ROUNDS):
        solution, _ = nnls(weights[:, None] * matrix, weights * np.maximum(left, 0))
        rounded = np.where(solution < 2, np.rint(solution), np.floor(solution))
        numbers += rounded
        left -= matrix @ rounded
        if np.maximum(left, 0).sum() < ENOUGH or not rounded.any():
            break
    slots = {lengths_of(patterns[index]): int(numbers[index]) for index in np.flatnonzero(numbers)}
    return fill_slots(slots, histogram, 1, hand_down=False)
