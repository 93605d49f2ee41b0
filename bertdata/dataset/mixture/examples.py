"""The examples of a mixture (several datasets read as one), read in order.

This module imports NumPy.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal, get_args

import numpy as np

from bertdata.dataset.masked_data import MaskedData
from bertdata.dataset.mixture.opening import join_sources
from bertdata.dataset.mixture.turns import find_turns
from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import SettingsError
from bertdata.examples import columns
from bertdata.records import ExampleBatch

StoppingStrategy = Literal["first_exhausted", "all_exhausted"]
"""End of an epoch of a mixture: when one source has supplied all its examples, or when all sources have."""

_BLOCK = 4096  # number of examples that are read from the sources and mixed at a time


@dataclass(frozen=True, kw_only=True, slots=True)
class MixedExamples(OpenedDataset):
    """An epoch of a mixture as a dataset: ``length`` consecutive examples of the mixture's order.

    The order has no end, because a source starts again after its last example. If masks are drawn for a
    source while it is read, each pass over it has the masks of another epoch.

    parts: the datasets that are mixed, which are called sources.
    first: place in the mixture's order of the first example.
    """

    parts: tuple[OpenedDataset, ...]
    first: int
    length: int

    @property
    def examples(self) -> int:
        return self.length

    def read_range(self, numbers: range) -> Iterator[ExampleBatch]:
        """Yield the examples with these numbers, which are counted from the first example of this epoch."""
        turns = find_turns(tuple(source.weight for source in self.sources))
        start, stop = (self.first + number for number in (numbers.start, numbers.stop))
        given = turns.count_turns(start)
        streams = [_SourceStream(part, int(number)) for part, number in zip(self.parts, given, strict=True)]
        # Take the next examples of every source, then put them in mixed order. An example with 2 sources
        # whose streams have given [7, 3] examples: the block's sources are [0, 1, 0] and the numbers of their
        # turns (index) are [7, 3, 8]. counts is [2, 1], so the examples that are taken lie as [turn 7 of
        # source 0, turn 8 of source 0, turn 3 of source 1]. before + index then gives the position of each
        # turn in that list, [0, 2, 1].
        for place in range(start, stop, _BLOCK):
            sources, index = turns.find_sources(np.arange(place, min(place + _BLOCK, stop)))
            counts = np.bincount(sources, minlength=len(streams))
            taken = [stream.take(int(count)) for stream, count in zip(streams, counts, strict=True)]
            before = np.cumsum(counts) - counts - given
            yield columns.take_examples(
                columns.join_batches([batch for own in taken for batch in own]), before[sources] + index
            )
            given = given + counts

    def at_epoch(self, epoch: int) -> "MixedExamples":
        """Return the examples of another epoch of the mixture.

        The masks do not depend on the mixture's epoch. They change with each pass over a source.
        """
        return replace(self, first=epoch * self.length)

    def change_sources(self, change: Callable[[OpenedDataset], OpenedDataset]) -> "MixedExamples":
        """Return the same mixture with a function applied to each source.

        change: function that returns the new source.
        """
        parts = tuple(change(part) for part in self.parts)
        return replace(self, parts=parts, layout=parts[0].layout)


class _SourceStream:
    """An endless stream of the examples of a source, which starts again after the source's last example.

    number: number of the first example in the stream.
    """

    def __init__(self, data: OpenedDataset, number: int) -> None:
        self._batches = _repeat_batches(data, number)
        self._held: ExampleBatch | None = None

    def take(self, count: int) -> list[ExampleBatch]:
        """Return the next ``count`` examples of the stream, as a list of batches."""
        found = []
        while count:
            held = self._held if self._held is not None else next(self._batches)
            used = min(count, len(held))
            found.append(columns.slice_batch(held, 0, used))
            self._held = columns.slice_batch(held, used, len(held)) if used < len(held) else None
            count -= used
        return found


def _repeat_batches(data: OpenedDataset, number: int) -> Iterator[ExampleBatch]:
    epoch, first = divmod(number, data.examples)
    while True:
        now = replace(data, epoch=data.epoch + epoch) if isinstance(data, MaskedData) else data
        for batch in now.read_range(range(first, data.examples)):
            if len(batch):
                yield batch
        epoch, first = epoch + 1, 0


def mix_examples(
    parts: Sequence[OpenedDataset],
    weights: Sequence[int],
    *,
    epoch: int = 0,
    stopping_strategy: str = "first_exhausted",
    examples: int | None = None,
) -> MixedExamples:
    """Return the examples of one epoch of a mixture.

    Each epoch continues where the epoch before it ended, in the mixture and in each source.

    parts: the datasets to mix, which are called sources.
    weights: an integer for each source. Sources take turns in proportion to their weights.
    epoch: number of the epoch, from 0.
    stopping_strategy: when an epoch ends, unless ``examples`` is given.
    examples: number of examples in an epoch. None lets stopping_strategy decide.

    Raises SettingsError for an invalid setting.
    """
    length = compute_epoch_length([part.examples for part in parts], weights, stopping_strategy)
    if examples is not None:
        length = examples
    for name, value, least in (("epoch", epoch, 0), ("examples", length, 1)):
        if type(value) is not int or value < least:
            raise SettingsError(f"{name} is {value!r}, expected an integer of {least} or more")
    united = join_sources(parts, weights)
    values = {item.name: getattr(united, item.name) for item in fields(OpenedDataset)}
    return MixedExamples(**values, parts=tuple(parts), first=epoch * length, length=length)


def compute_epoch_length(sizes: Sequence[int], weights: Sequence[int], stopping_strategy: str) -> int:
    """Return the number of examples in an epoch of a mixture.

    sizes: number of examples of each source.
    weights: an integer for each source.
    stopping_strategy: "first_exhausted" ends the epoch when the first source has supplied all its examples.
        "all_exhausted" ends it when the last source has.
    """
    if stopping_strategy not in get_args(StoppingStrategy):
        wanted = " or ".join(get_args(StoppingStrategy))
        raise SettingsError(f"stopping_strategy is {stopping_strategy!r}, expected {wanted}")
    turns = find_turns(tuple(weights))
    ends = [turns.find_place(source, size - 1) + 1 for source, size in enumerate(sizes)]
    return min(ends) if stopping_strategy == "first_exhausted" else max(ends)
