"""The examples of a mixture in their order, for views of a dataset.

Needs NumPy when it is imported.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal, get_args

import numpy as np

from bertdata.dataset.masked_data import MaskedData
from bertdata.dataset.mixture.opening import unite_sources
from bertdata.dataset.mixture.turns import turns_of
from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import SettingsError
from bertdata.examples import columns
from bertdata.records import ExampleBatch

StoppingStrategy = Literal["first_exhausted", "all_exhausted"]
"""The end of an epoch: when the first source, or the last one, has given all its examples."""

_BLOCK = 4096  # examples


@dataclass(frozen=True, kw_only=True, slots=True)
class MixedExamples(OpenedDataset):
    """``length`` examples of a mixture from a place in its endless order on. parts: the sources.

    Each source gives its examples in order and then begins again. Masks that are drawn anew are, in each
    pass over a source, those of another epoch.
    """

    parts: tuple[OpenedDataset, ...]
    first: int
    length: int

    @property
    def examples(self) -> int:
        return self.length

    def run(self, numbers: range) -> Iterator[ExampleBatch]:
        """The examples whose numbers, counted from ``first``, are in the range."""
        turns = turns_of(tuple(source.weight for source in self.sources))
        start, stop = (self.first + number for number in (numbers.start, numbers.stop))
        given = turns.counts(start)
        streams = [_Stream(part, int(number)) for part, number in zip(self.parts, given, strict=True)]
        for place in range(start, stop, _BLOCK):
            sources, index = turns.find(np.arange(place, min(place + _BLOCK, stop)))
            counts = np.bincount(sources, minlength=len(streams))
            taken = [stream.take(int(count)) for stream, count in zip(streams, counts, strict=True)]
            before = np.cumsum(counts) - counts - given
            yield columns.take(
                columns.join([batch for own in taken for batch in own]), before[sources] + index
            )
            given = given + counts

    def changed(self, change: Callable[[OpenedDataset], OpenedDataset]) -> "MixedExamples":
        """The same mixture with each source changed."""
        parts = tuple(change(part) for part in self.parts)
        return replace(self, parts=parts, layout=parts[0].layout)


class _Stream:
    """The examples of one source from a number on, epoch after epoch."""

    def __init__(self, data: OpenedDataset, number: int) -> None:
        self._batches = _endless(data, number)
        self._held: ExampleBatch | None = None

    def take(self, count: int) -> list[ExampleBatch]:
        """The next ``count`` examples."""
        found = []
        while count:
            held = self._held if self._held is not None else next(self._batches)
            used = min(count, len(held))
            found.append(columns.cut(held, 0, used))
            self._held = columns.cut(held, used, len(held)) if used < len(held) else None
            count -= used
        return found


def _endless(data: OpenedDataset, number: int) -> Iterator[ExampleBatch]:
    epoch, first = divmod(number, data.examples)
    while True:
        now = replace(data, epoch=data.epoch + epoch) if isinstance(data, MaskedData) else data
        for batch in now.run(range(first, data.examples)):
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
    """One epoch of a mixture. weights: whole numbers.

    An epoch begins where the one before has ended, in each source too. examples: the length of an epoch, in
    place of the stopping strategy. SettingsError for a setting that cannot be.
    """
    length = epoch_length([part.examples for part in parts], weights, stopping_strategy)
    if examples is not None:
        length = examples
    for name, value, least in (("epoch", epoch, 0), ("examples", length, 1)):
        if type(value) is not int or value < least:
            raise SettingsError(f"{name} is {value!r}, expected an integer of {least} or more")
    united = unite_sources(parts, weights)
    values = {item.name: getattr(united, item.name) for item in fields(OpenedDataset)}
    return MixedExamples(**values, parts=tuple(parts), first=epoch * length, length=length)


def epoch_length(sizes: Sequence[int], weights: Sequence[int], stopping_strategy: str) -> int:
    """The examples of a mixture until the first, or the last, source has given all that it holds."""
    if stopping_strategy not in get_args(StoppingStrategy):
        wanted = " or ".join(get_args(StoppingStrategy))
        raise SettingsError(f"stopping_strategy is {stopping_strategy!r}, expected {wanted}")
    turns = turns_of(tuple(weights))
    ends = [turns.place(source, size - 1) + 1 for source, size in enumerate(sizes)]
    return min(ends) if stopping_strategy == "first_exhausted" else max(ends)
