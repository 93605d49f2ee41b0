"""Common interface to the pure-Python and the C++ implementation of packing and masking a batch.

Both take NumPy arrays and return NumPy arrays. Needs NumPy when it is imported.
"""

from typing import Any, Protocol

import numpy as np

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.examples.columns import Array
from bertdata.examples.pcg_stream import PcgStream
from bertdata.loaders.modernbert.masks import MaskedCells, mask_cells
from bertdata.loaders.modernbert.packer import PackedRows, Packer, PackerState
from bertdata.loaders.modernbert.settings import ModernBertSettings

_LONG = (1 << 64) - 1

StreamState = tuple[int, int | None]
"""State of a random stream: the generator's 128-bit state, and the unused half of its last output or None."""


class EpochPacker(Protocol):
    """Interface of an object that packs one epoch's sequences into rows, in Python or in the C++ kernel."""

    state: PackerState

    def pack(self, rows: int) -> PackedRows | None: ...


class EpochMasker(Protocol):
    """Interface of an object that masks the batches of one epoch. They must come in their order in the
    epoch.
    """

    state: StreamState

    def draw(self, ids: Array, row_ends: Array, width: int) -> MaskedCells:
        """Arrange ids in rows, mask them, and return the results as int64 arrays of shape (rows, width).

        ids: the ids of all rows, one row after another.
        row_ends: for each row, the index in ``ids`` after its last id.
        width: number of positions in a row. Shorter rows are padded.
        """
        ...


class _NativePacker:
    """The packer of an epoch's sequences that runs in the C++ kernel (_native/loaders/modernbert.h)."""

    def __init__(self, lengths: Array, settings: ModernBertSettings) -> None:
        self._packer = kernels.ModernBertPacker(
            lengths.astype(np.uint32),
            batch_size=settings.batch_size,
            buffer_size=settings.buffered,
            width=settings.width,
        )

    @property
    def state(self) -> PackerState:
        return PackerState(*self._packer.state())

    @state.setter
    def state(self, state: PackerState) -> None:
        self._packer.set_state(*state)

    def pack(self, rows: int) -> PackedRows | None:
        found = self._packer.pack(rows)
        return None if found is None else PackedRows(np.asarray(found[0]), np.asarray(found[1]))


class _NativeMasker:
    """The masking of an epoch's batches that runs in the C++ kernel (_native/loaders/modernbert.h)."""

    def __init__(self, seed: int, rule: dict[str, Any]) -> None:
        self._masks, self._rule = kernels.ModernBertMasks(seed), rule

    @property
    def state(self) -> StreamState:
        high, low, half = self._masks.state()
        return high << 64 | low, half

    @state.setter
    def state(self, state: StreamState) -> None:
        self._masks.set_state(state[0] >> 64, state[0] & _LONG, state[1])

    def draw(self, ids: Array, row_ends: Array, width: int) -> MaskedCells:
        made = np.empty((3, len(row_ends), width), np.int64)
        redrawn, tokens = self._masks.draw(ids, row_ends.astype(np.int64), made.reshape(-1), **self._rule)
        return MaskedCells(made[0], made[1], made[2], redrawn, tokens)


class _PythonMasker:
    """The masking of an epoch's batches that runs in pure Python."""

    def __init__(self, seed: int, rule: dict[str, Any]) -> None:
        self._stream, self._rule = PcgStream(seed), rule

    @property
    def state(self) -> StreamState:
        return self._stream.state

    @state.setter
    def state(self, state: StreamState) -> None:
        self._stream.state = state

    def draw(self, ids: Array, row_ends: Array, width: int) -> MaskedCells:
        cells = np.full((len(row_ends), width), self._rule["padding_id"], np.int64)
        for row, row_ids in zip(cells, np.split(ids, row_ends[:-1]), strict=True):
            row[: len(row_ids)] = row_ids
        made = mask_cells(cells.ravel().tolist(), self._stream, **self._rule)
        ids, labels, attention = (np.array(one, np.int64).reshape(cells.shape) for one in made[:3])
        return MaskedCells(ids, labels, attention, made.redrawn, made.tokens)


def make_packer(lengths: Array, settings: ModernBertSettings, engine: Engine | None) -> EpochPacker:
    """Make the object that packs the sequences of one epoch into rows.

    lengths: number of ids of each sequence in the epoch's order, at most ``max_seq_len``.
    engine: the implementation to use. None means the C++ kernel if it is available.
    """
    if use_native(engine or default_engine()):
        return _NativePacker(lengths, settings)
    return Packer(
        lengths.tolist(),
        batch_size=settings.batch_size,
        buffer_size=settings.buffered,
        width=settings.width,
    )


def make_epoch_masker(
    epoch: int, settings: ModernBertSettings, *, mask_id: int, padding_id: int, engine: Engine | None
) -> EpochMasker:
    """Make the object that masks the batches of one epoch. Its seed is ``mask_seed`` plus the epoch.

    mask_id: id of the mask token.
    padding_id: id at padded positions.
    engine: the implementation to use. None means the C++ kernel if it is available.
    """
    rule = {"mask_prob": settings.mask_prob, "mask_id": mask_id, "padding_id": padding_id}
    make = _NativeMasker if use_native(engine or default_engine()) else _PythonMasker
    return make(settings.mask_seed + epoch, rule)
