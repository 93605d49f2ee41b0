"""Assign each example its packed row and its place in the row.

The place depends only on the plan, the seed and the example's position in the source, so each process can
compute it alone. Examples of equal length are numbered through all shards. A permutation determined by a key
maps this number to a slot of the plan, which sends examples of one document to rows far apart. Another
permutation shuffles the rows.
"""

from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from bertdata.packing.pack_plan import Histogram, PackPlan
from bertdata.packing.permutation import Permutations
from bertdata.records import Buffer

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class RowPlaces:
    """The row and the place of several examples.

    rows: number of each example's row, counted through all shards of the output.
    places: index of each example in its row.
    """

    rows: IntArray
    places: IntArray


class Placement:
    """The row and the place of every example, computed from a packing plan.

    A slot is a place for an example in a row. The plan's slots are numbered by length, then by row, then by
    place in the row. The permutation of the examples of length l has the key ``<seed>/length/<l>``, and the
    permutation of the rows the key ``<seed>/rows``.
    """

    def __init__(self, plan: PackPlan, seed: int) -> None:
        sizes = plan.histogram()
        self._slots = Permutations(
            sizes.tolist(), [f"{seed}/length/{length}" for length in range(len(sizes))]
        )
        self._rows = Permutations([plan.rows], [f"{seed}/rows"])
        self._first_slot = np.cumsum(sizes) - sizes
        runs = _list_runs(plan)
        self._run_starts = np.array(list(accumulate((run.rows for run in runs), initial=0))[:-1])
        self._run_rows = np.array([run.first_row for run in runs])
        self._run_places = np.array([run.place for run in runs])

    def find(self, lengths: Buffer, numbers: IntArray) -> RowPlaces:
        """Return the row and the place of each example.

        lengths: number of ids of each example.
        numbers: index of each example among all examples of its length.
        """
        which = np.asarray(lengths)
        # 1. Shuffle the examples of each length among the slots of that length.
        slots = self._slots.permute(which, numbers) + self._first_slot[which]
        # 2. Find the slot's run, and then its row in the plan. A run covers consecutive rows, so the row is
        # the run's first row plus the slot's index within the run.
        runs = np.searchsorted(self._run_starts, slots, side="right") - 1
        rows = self._run_rows[runs] + slots - self._run_starts[runs]
        # 3. Shuffle the rows. Without this, rows with the same combination of lengths would follow each
        # other.
        shuffled = self._rows.permute(np.zeros(len(rows), np.intp), rows)
        return RowPlaces(rows=shuffled, places=self._run_places[runs])


@dataclass(frozen=True, slots=True)
class _Run:
    """Slots of equal length at the same place of consecutive rows of the plan.

    For example, the plan {(2, 6): 5} has two runs: slots of length 2 at place 0 of rows 0 to 4, and slots of
    length 6 at place 1 of rows 0 to 4.
    """

    length: int
    first_row: int
    place: int
    rows: int


def _list_runs(plan: PackPlan) -> list[_Run]:
    """Return the plan's runs of equal slots, in the order in which the slots are numbered."""
    found, first_row = [], 0
    for lengths, rows in plan.rows_by_lengths:
        found += [_Run(length, first_row, place, rows) for place, length in enumerate(lengths)]
        first_row += rows
    return sorted(found, key=lambda run: (run.length, run.first_row, run.place))


class Numbering:
    """Numbering of the examples of each length: an example gets its index among all examples of its length.

    before: for each length, the number of examples of this length in earlier shards.
    """

    def __init__(self, before: Histogram) -> None:
        self._next = before.copy()

    def add(self, lengths: Buffer) -> IntArray:
        """Return the indices of the next examples.

        lengths: number of ids of each of these examples.
        """
        found = np.asarray(lengths)
        counts = np.bincount(found, minlength=len(self._next))
        # The stable sort groups equal lengths and keeps their order. Within a group the index counts up from
        # 0. For example, lengths [5, 3, 5] with 7 earlier examples of length 3 and none of length 5 get the
        # numbers [0, 7, 1].
        order = np.argsort(found, kind="stable")
        numbers = np.empty(len(found), np.int64)
        starts = np.cumsum(counts) - counts
        numbers[order] = np.arange(len(found)) - starts[found[order]]
        numbers += self._next[found]
        self._next += counts
        return numbers
