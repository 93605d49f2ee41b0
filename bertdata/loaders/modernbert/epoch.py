"""One epoch of ModernBERT's batches: it orders the examples, packs them into rows and masks the rows.

Needs NumPy when it is imported.
"""

from dataclasses import dataclass

import numpy as np

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.examples.columns import Array
from bertdata.examples.pcg_stream import DxsmStream
from bertdata.loaders.modernbert.engines import EpochMasker, EpochPacker, make_epoch_masker, make_packer
from bertdata.loaders.modernbert.masks import MaskedCells
from bertdata.loaders.modernbert.settings import ModernBertSettings
from bertdata.loaders.sequences import IndexedSequences


@dataclass(frozen=True, kw_only=True, slots=True)
class SpecialIds:
    """The special ids that masking needs: those of the mask token and of padding."""

    mask_id: int
    padding_id: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PackedBatch:
    """The sequences that were packed into one batch, row after row. All arrays are int64.

    numbers: number of each sequence in the dataset.
    lengths: number of ids of each sequence, cut to ``max_seq_len``.
    row_ends: for each row, how many sequences there are up to its end.
    token_ends: for each row, how many ids there are up to its end.
    """

    numbers: Array
    lengths: Array
    row_ends: Array
    token_ends: Array


class ModernBertEpoch:
    """The batches of one epoch for one rank (process of distributed training).

    Batches are packed one after another. They must be masked in the same order, because all masks of an epoch
    come from one random stream.

    ids: the special ids that masking needs.
    epoch: number of the epoch, from 0.
    """

    def __init__(
        self,
        sequences: IndexedSequences,
        settings: ModernBertSettings,
        ids: SpecialIds,
        epoch: int,
        engine: Engine | None = None,
    ) -> None:
        self.number = epoch
        self._sequences, self._settings = sequences, settings
        self._order = find_order(len(sequences.lengths), epoch, settings, engine)
        self._lengths = np.minimum(sequences.lengths[self._order], settings.max_seq_len)
        self.packer: EpochPacker = make_packer(self._lengths, settings, engine)
        self.masks: EpochMasker = make_epoch_masker(
            epoch, settings, mask_id=ids.mask_id, padding_id=ids.padding_id, engine=engine
        )

    def __len__(self) -> int:
        """Return the number of sequences that this rank reads in the epoch."""
        return len(self._order)

    def pack(self, rows: int) -> PackedBatch | None:
        """Pack the next batch into this many rows. Return None if the epoch has no further full batch."""
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
        """Return the ids of the batch's sequences, one sequence after another, as integers of 16 or 32
        bits.
        """
        return self._sequences.take(packed.numbers, self._settings.max_seq_len)

    def mask(self, packed: PackedBatch, ids: Array) -> MaskedCells:
        """Arrange the ids of a packed batch in padded rows and mask them.

        The results have the shape (rows, width).
        """
        return self.masks.draw(ids, packed.token_ends, self._settings.width)


def find_order(
    examples: int, epoch: int, settings: ModernBertSettings, engine: Engine | None = None
) -> Array:
    """Return the numbers of the examples that one rank reads in an epoch, in the order in which it reads
    them.

    All ranks get equally many examples. If the examples do not divide evenly, the examples at the start of
    the order are repeated at its end. With ``drop_last`` some examples at the end of the order are dropped
    instead.

    examples: number of examples in the dataset.
    epoch: number of the epoch, from 0.
    """
    world = settings.world
    order = np.arange(examples, dtype=np.int64)
    if settings.shuffle:
        order = _permute(examples, settings.order_seed + epoch, engine)
    # Compute the number of examples of a rank as torch's DistributedSampler does. 10 examples and 4 ranks,
    # for example, give 3 for each rank, or 2 with drop_last.
    each = -(-examples // world)
    if settings.drop_last and examples % world:
        each = -(-(examples - world) // world)
    # If the order is too short, np.resize repeats it from its start, several times if necessary. If it is too
    # long, np.resize cuts it. Rank r then reads every world-th example from the r-th on.
    numbers: Array = np.resize(order, each * world)[settings.rank :: world]
    return numbers


def _permute(examples: int, seed: int, engine: Engine | None) -> Array:
    """Return a random permutation of the examples, as NumPy's ``Generator(PCG64DXSM(seed))`` draws it."""
    if use_native(engine or default_engine()):
        return np.asarray(kernels.dxsm_permutation(seed, examples)).astype(np.int64)
    return np.array(DxsmStream(seed).permutation(examples), np.int64)
