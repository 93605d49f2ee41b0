"""Masks of ModernBERT's rows, drawn when their examples are gathered."""

from dataclasses import dataclass, replace

import numpy as np

from bertdata.dataset.reader import OpenedDataset
from bertdata.examples.columns import Array
from bertdata.loaders.modernbert.epoch import ModernBertEpoch, PackedBatch
from bertdata.loaders.modernbert.masks import IGNORED
from trainer.data.examples import GatheredExamples, Piece
from trainer.data.order import OwnRows


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ModernBertBatch(OwnRows):
    """A worker's rows of one update. stream: its masks, at the point before this batch."""

    packed: PackedBatch
    stream: "EpochMaskStream"


class EpochMaskStream:
    """The masks of an epoch, batch after batch. redrawn: integers that were drawn anew so far."""

    def __init__(self, epoch: ModernBertEpoch) -> None:
        self._epoch, self.redrawn = epoch, 0

    def go_to(self, state: tuple[int, int | None], redrawn: int) -> None:
        """Stand at that state, which so many integers drawn anew lead to."""
        self._epoch.masks.state, self.redrawn = state, redrawn

    def draw(self, packed: PackedBatch, ids: Array) -> tuple[Array, Array]:
        """The masked ids and the labels of a batch's ids, without those of padding."""
        made = self._epoch.mask(packed, ids)
        self.redrawn += made.redrawn
        cells, labels = np.asarray(made.ids), np.asarray(made.labels)
        tokens = np.diff(packed.token_ends, prepend=0)
        real = np.arange(cells.shape[1]) < tokens[:, np.newaxis]
        return cells[real], labels[real]


@dataclass(frozen=True, slots=True)
class ModernBertMasks:
    """ModernBERT's masks of the rows that are gathered."""

    masked: OpenedDataset
    counts_vary = True

    def draw(
        self, gathered: GatheredExamples, own: OwnRows, pieces: list[Piece], update: int
    ) -> GatheredExamples:
        """The gathered examples with masks, their ids changed in place. The position is completed."""
        assert isinstance(own, ModernBertBatch)
        used = np.arange(gathered.ids.shape[1]) < gathered.lengths[:, np.newaxis]
        ids, labels = own.stream.draw(own.packed, gathered.ids[used].astype(np.uint32))
        gathered.ids[used] = ids
        redrawn = own.stream.redrawn + 1  # 0: not known
        own.positions[0] = own.positions[0]._replace(
            examples=redrawn if redrawn < self.masked.examples else 0
        )
        chosen = np.zeros(used.shape, bool)
        chosen[used] = labels != IGNORED
        counts = chosen.sum(axis=1, dtype=np.int32)
        example, place = np.nonzero(chosen)
        number = np.arange(len(place)) - np.repeat(np.cumsum(counts) - counts, counts)
        positions, originals = np.zeros((2, *gathered.positions.shape), np.int32)
        positions[example, number], originals[example, number] = place, labels[labels != IGNORED]
        return replace(gathered, positions=positions, labels=originals, masks=counts, token_targets={})
