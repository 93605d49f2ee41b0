"""Some examples of a dataset, in an order of their own.

This module imports NumPy.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Protocol

import numpy as np

from bertdata.dataset.mixture.by_number import MixedAccess
from bertdata.dataset.mixture.examples import MixedExamples
from bertdata.dataset.random_access import RandomAccess
from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.errors import SettingsError
from bertdata.records import ExampleBatch

_BLOCK = 4096  # number of examples that are read at a time


class ExampleAccess(Protocol):
    """Access to the examples of a dataset by their numbers."""

    def read_batch(self, numbers: Sequence[int]) -> ExampleBatch:
        """Return the examples with these numbers, in this order. There must be at least one."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class SelectedExamples(OpenedDataset):
    """A dataset of chosen examples of another dataset.

    Masks that are drawn while examples are read depend on the numbers that the examples have in the other
    dataset, so an example has the same masks in any selection.

    source: the other dataset.
    numbers: for each example, its number in the other dataset, as 64-bit integers.
    """

    source: OpenedDataset
    numbers: "array[int]"

    @property
    def examples(self) -> int:
        return len(self.numbers)

    @property
    def has_lengths(self) -> bool:
        """False, because the lengths that are stored with the shards are those of all examples."""
        return False

    def batches(self, shard: Shard) -> Iterator[ExampleBatch]:
        """Raise SettingsError, because chosen examples are not read shard by shard."""
        raise SettingsError(f"{self.name}: chosen examples have no shards; take them by number or in order")

    def read_range(self, numbers: range) -> Iterator[ExampleBatch]:
        """Yield the examples with these numbers, in batches."""
        access = open_access(self)
        for start in range(numbers.start, numbers.stop, _BLOCK):
            yield access.read_batch(range(start, min(start + _BLOCK, numbers.stop)))

    def at_epoch(self, epoch: int) -> "SelectedExamples":
        """Return the same examples with the masks of another epoch."""
        return replace(self, source=self.source.at_epoch(epoch))

    def change_sources(self, change: Callable[[OpenedDataset], OpenedDataset]) -> "SelectedExamples":
        """Return the same examples of the changed dataset."""
        changed = self.source.change_sources(change)
        return replace(self, source=changed, layout=changed.layout)


class SelectedAccess:
    """Access to chosen examples by their numbers in the selection."""

    def __init__(self, data: SelectedExamples) -> None:
        self._numbers = np.frombuffer(data.numbers, dtype=np.int64)
        self._access = open_access(data.source)

    def read_batch(self, numbers: Sequence[int]) -> ExampleBatch:
        """Return the examples with these numbers, in this order. There must be at least one."""
        return self._access.read_batch(self._numbers[np.asarray(numbers)].tolist())


def open_access(data: OpenedDataset) -> ExampleAccess:
    """Return access to the examples of a dataset of any kind by their numbers."""
    if isinstance(data, SelectedExamples):
        return SelectedAccess(data)
    if isinstance(data, MixedExamples):
        return MixedAccess(data)
    return RandomAccess(data)


def select_examples(data: OpenedDataset, numbers: Sequence[int]) -> SelectedExamples:
    """Return a dataset of the examples with these numbers, in this order.

    numbers: numbers of examples. Negative numbers count from the end.

    Raises IndexError for a number that no example has, and SettingsError if there are no numbers.
    """
    size = data.examples
    if not len(numbers):
        raise SettingsError(f"{data.name}: no examples are chosen, expected one or more")
    chosen = array("q", numbers)
    for place, number in enumerate(chosen):
        if not -size <= number < size:
            raise IndexError(f"example {number}, expected {-size} to {size - 1}")
        if number < 0:
            chosen[place] = number + size
    if isinstance(data, SelectedExamples):  # choose from the dataset below, so that selections do not pile up
        return replace(data, numbers=array("q", (data.numbers[number] for number in chosen)))
    values = {item.name: getattr(data, item.name) for item in fields(OpenedDataset)}
    return SelectedExamples(**values, source=data, numbers=chosen)
