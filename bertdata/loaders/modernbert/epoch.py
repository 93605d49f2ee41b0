"""An epoch of ModernBERT's batches: its order, packer and masks.

Needs NumPy when it is imported.
"""

from dataclasses import dataclass

import numpy as np

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.examples.columns import Array
from bertdata.examples.pcg_stream import DxsmStream
from bertdata.loaders.modernbert.engines import EpochMasks, EpochPacker, make_masks, make_packer
from bertdata.loaders.modernbert.masks import MaskedCells
from bertdata.loaders.modernbert.settings import ModernBertSettings
from bertdata.loaders.sequences import IndexedSequences


@dataclass(frozen=True, kw_only=True, slots=True)
class CellIds:
    """The ids that masks put in and leave out."""

    mask_id: int
    padding_id: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PackedBatch:
    """Sequences of a batch, row after row, int64 each.

    numbers: in the dataset. lengths: of each, cut. row_ends: behind each row's sequences. token_ends: behind
    each row's ids.
    """

    numbers: Array
    lengths: Array
    row_ends: Array
    token_ends: Array


class ModernBertEpoch:
    """The batches of an epoch of one rank, packed one after the other, and their masks in the same order."""

    def __init__(
        self,
        sequences: IndexedSequences,
        settings: ModernBertSettings,
        ids: CellIds,
        epoch: int,
        engine: Engine | None = None,
    ) -> None:
        self.number = epoch
        self._sequences, self._settings = sequences, settings
        self._order = find_order(len(sequences.lengths), epoch, settings, engine)
        self._lengths = np.minimum(sequences.lengths[self._order], settings.max_seq_len)
        self.packer: EpochPacker = make_packer(self._lengths, settings, engine)
        self.masks: EpochMasks = make_masks(
            epoch, settings, mask_id=ids.mask_id, padding_id=ids.padding_id, engine=engine
        )

    def __len__(self) -> int:
        """The sequences of the rank."""
        return len(self._order)

    def pack(self, rows: int) -> PackedBatch | None:
        """The next batch of so many rows, None where the epoch has ended."""
        packed = self.packer.pack(rows)
        if packed is None:
            return None
        places, row_ends = np.asarray(packed.places, np.int64), np.asarray(packed.ends, np.int64)
        lengths = self._lengths[places]
        return PackedBatch(
            numbers=self._order[places],
            lengths=lengths,
            row_ends=row_ends,
            token_ends=np.cumsum(lengths)[row_ends - 1],
        )

    def take(self, packed: PackedBatch) -> Array:
        """The ids of a batch's sequences one behind the other, 16 or 32 bits each."""
        return self._sequences.take(packed.numbers, self._settings.max_seq_len)

    def mask(self, packed: PackedBatch, ids: Array) -> MaskedCells:
        """The ids of a batch in masked rows: arrays [R, W] of int64."""
        return self.masks.draw(ids, packed.token_ends, self._settings.width)


def find_order(
    examples: int, epoch: int, settings: ModernBertSettings, engine: Engine | None = None
) -> Array:
    """The numbers of a rank's examples of an epoch (from 0), in order, as int64.

    Padded from the order's own start until all ranks have equally many, again from there where the whole
    order is too short. With ``drop_last`` it is cut instead.
    """
    world = settings.world
    order = np.arange(examples, dtype=np.int64)
    if settings.shuffle:
        order = _permute(examples, settings.order_seed + epoch, engine)
    each = -(-examples // world)
    if settings.drop_last and examples % world:
        each = -(-(examples - world) // world)
    own: Array = np.resize(order, each * world)[settings.rank :: world]
    return own


def _permute(examples: int, seed: int, engine: Engine | None) -> Array:
    """``Generator(PCG64DXSM(seed)).permutation(examples)``."""
    if use_native(engine or default_engine()):
        return np.asarray(kernels.dxsm_permutation(seed, examples)).astype(np.int64)
    return np.array(DxsmStream(seed).permutation(examples), np.int64)
