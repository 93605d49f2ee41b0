"""The place of each example in the packed rows: a function of the plan, a seed, and where the example stands.

Examples of one length are numbered through all shards. A keyed permutation leads from this number to a slot
of the plan, so from examples of one document to far apart rows; another one from the plan's rows to
those of the output.
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
    """For each of some examples the packed row, counted through the whole output, and its place in it."""

    rows: IntArray
    places: IntArray


class Placement:
    """Places of all examples of a plan. Slots are numbered by length, then by row of the plan, then by place.

    Keys: those of the names ``<seed>/length/<l>`` and ``<seed>/rows``.
    """

    def __init__(self, plan: PackPlan, seed: int) -> None:
        sizes = plan.histogram()
        self._slots = Permutations(
            sizes.tolist(), [f"{seed}/length/{length}" for length in range(len(sizes))]
        )
        self._rows = Permutations([plan.rows], [f"{seed}/rows"])
        self._first_slot = np.cumsum(sizes) - sizes
        runs = _runs(plan)
        self._run_starts = np.array(list(accumulate((run.rows for run in runs), initial=0))[:-1])
        self._run_rows = np.array([run.first_row for run in runs])
        self._run_places = np.array([run.place for run in runs])

    def find(self, lengths: Buffer, numbers: IntArray) -> RowPlaces:
        """The places of examples of these lengths, which have these numbers among all of their length."""
        which = np.asarray(lengths)
        slots = self._slots.places(which, numbers) + self._first_slot[which]
        runs = np.searchsorted(self._run_starts, slots, side="right") - 1
        rows = self._run_rows[runs] + slots - self._run_starts[runs]
        shuffled = self._rows.places(np.zeros(len(rows), np.intp), rows)
        return RowPlaces(rows=shuffled, places=self._run_places[runs])


@dataclass(frozen=True, slots=True)
class _Run:
    """Slots of one length that have one place in consecutive rows of the plan."""

    length: int
    first_row: int
    place: int
    rows: int


def _runs(plan: PackPlan) -> list[_Run]:
    """All slots of the plan in their order."""
    found, first_row = [], 0
    for lengths, rows in plan.rows_by_lengths:
        found += [_Run(length, first_row, place, rows) for place, length in enumerate(lengths)]
        first_row += rows
    return sorted(found, key=lambda run: (run.length, run.first_row, run.place))


class Numbering:
    """Numbers of examples among all of their length, as they come. before: examples of earlier shards."""

    def __init__(self, before: Histogram) -> None:
        self._next = before.copy()

    def add(self, lengths: Buffer) -> IntArray:
        """The numbers of the next examples."""
        found = np.asarray(lengths)
        counts = np.bincount(found, minlength=len(self._next))
        order = np.argsort(found, kind="stable")
        numbers = np.empty(len(found), np.int64)
        starts = np.cumsum(counts) - counts
        numbers[order] = np.arange(len(found)) - starts[found[order]]
        numbers += self._next[found]
        self._next += counts
        return numbers
