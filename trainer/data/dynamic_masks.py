"""Datasets whose masks are drawn when examples are loaded, and the masks of gathered examples."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.examples import columns
from bertdata.examples.bert.batch import BertBatch
from bertdata.examples.columns import Array
from bertdata.examples.dynamic_masking.counter_stream import shard_key
from bertdata.examples.dynamic_masking.masker import Draws, Masker, unmask
from bertdata.records import Buffer, ExampleBatch
from bertdata.shards.packed.packs import PackBatch
from trainer.data.compact import GatheredExamples, Piece
from trainer.data.mask_rate import MaskRate
from trainer.data.order import FileRows

_EVALUATION_EPOCH = 0


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Masking:
    """The drawing of masks: rules, seed and rate."""

    masker: Masker
    seed: int
    rate: MaskRate

    def draws(self, shard: str, epoch: int, numbers: Array, rate: float) -> Draws:
        """The draws of some examples of one shard."""
        return Draws(
            keys=np.full(len(numbers), shard_key(self.seed, epoch, shard), np.uint64),
            numbers=numbers.astype(np.uint64),
            rates=np.full(len(numbers), rate),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class MaskedData(OpenedDataset):
    """A dataset whose masks are drawn: ``source``, with the layout of the masks to draw.

    As it is, its examples have the masks of one rate and of epoch 0: for evaluation, and to see how many
    masks there are.
    """

    source: OpenedDataset
    masking: Masking
    drawn_rate: float

    @property
    def has_lengths(self) -> bool:
        return self.source.has_lengths

    def lengths(self, shard: Shard) -> Buffer:
        """The tokens of each of the shard's examples."""
        return self.source.lengths(shard)

    def batches(self, shard: Shard) -> Iterator[ExampleBatch]:
        """The shard's examples, masked."""
        first = 0
        for batch in self.source.batches(shard):
            assert isinstance(batch, BertBatch)
            numbers = np.arange(first, first + len(batch))
            draws = self.masking.draws(shard.name, _EVALUATION_EPOCH, numbers, self.drawn_rate)
            yield columns.compact(self.masking.masker.mask_batch(batch, draws))
            first += len(batch)


View = TypeVar("View", bound=MaskedData)


@dataclass(frozen=True, kw_only=True, slots=True)
class UnmaskedData(MaskedData):
    """A dataset to train on: its own masks are taken off, others are drawn for each epoch by the loader."""

    def batches(self, shard: Shard) -> Iterator[ExampleBatch]:
        """The shard's examples without masks."""
        for batch in self.source.batches(shard):
            assert isinstance(batch, BertBatch)
            yield unmask(batch)

    def packs(self, shard: Shard) -> Iterator[PackBatch]:
        """The shard's packed rows, their examples without masks."""
        for packs in self.source.packs(shard):
            assert isinstance(packs.examples, BertBatch)
            yield replace(packs, examples=unmask(packs.examples))

    def sample(self) -> MaskedData:
        """The same examples with as many masks as the largest rate draws."""
        return masked_data(self.source, self.masking, self.masking.rate.largest)


def masked_data(source: OpenedDataset, masking: Masking, rate: float) -> MaskedData:
    """The dataset with masks of one rate."""
    return _view(MaskedData, source, masking, rate)


def unmasked_data(source: OpenedDataset, masking: Masking) -> UnmaskedData:
    """The dataset with masks to be drawn by the loader."""
    return _view(UnmaskedData, source, masking, masking.rate.start)


def _view(kind: type[View], source: OpenedDataset, masking: Masking, rate: float) -> View:
    most = masking.masker.settings.max_predictions_per_seq
    return kind(
        name=source.name,
        layout=replace(source.layout, max_predictions_per_seq=most),
        shards=source.shards,
        vocabulary_size=source.vocabulary_size,
        source=source,
        masking=masking,
        drawn_rate=rate,
    )


class DynamicMasks:
    """The masks of the examples that a worker gathers.

    update_rows: rows of one update in what is gathered. first_update: number of the first one, for a rate
    that changes.
    """

    def __init__(self, data: UnmaskedData, *, update_rows: int, first_update: int) -> None:
        self._masking = data.masking
        self._names = [shard.name for shard in data.shards]
        self._update_rows = update_rows
        self._update = first_update

    def draw(
        self, gathered: GatheredExamples, parts: Sequence[FileRows], pieces: Sequence[Piece]
    ) -> GatheredExamples:
        """The gathered examples with masks; parts: the rows of each piece, with its file and epoch.

        Their ids are changed in place. The updates of one call follow those of the last.
        """
        keys, numbers = np.empty((2, len(gathered)), np.uint64)
        for part, (_, own, targets) in zip(parts, pieces, strict=True):
            keys[targets] = shard_key(self._masking.seed, part.epoch, self._names[part.file])
            numbers[targets] = own
        starts = np.arange(len(gathered), dtype=np.int64) * gathered.ids.shape[1]
        draws = Draws(keys=keys, numbers=numbers, rates=self._rates(gathered))
        made = self._masking.masker.mask(gathered.ids.reshape(-1), starts, gathered.lengths, draws)
        return replace(gathered, positions=made.positions, labels=made.labels, masks=made.counts)

    def _rates(self, gathered: GatheredExamples) -> Array:
        """The rate of each example, that of its row's update."""
        updates = gathered.rows // self._update_rows
        rates = [self._masking.rate.at(self._update + number) for number in range(updates)]
        self._update += updates
        sizes = np.diff(gathered.row_ends, prepend=0)
        found: Array = np.repeat(np.repeat(np.array(rates), self._update_rows), sizes)
        return found
