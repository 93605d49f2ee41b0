"""ModernBERT's batches, epoch after epoch, and the state from which they go on.

Needs NumPy when it is imported.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from bertdata._native import Engine
from bertdata.errors import DatasetError, SettingsError
from bertdata.examples.columns import Array
from bertdata.loaders.modernbert.engines import EpochPacker, Masks, make_masks, make_packer
from bertdata.loaders.modernbert.order import find_order
from bertdata.loaders.modernbert.packer import PackedRows, PackerState
from bertdata.loaders.modernbert.settings import ModernBertSettings
from bertdata.loaders.modernbert.warmup import BatchWarmup
from bertdata.loaders.sequences import Sequences

Batch = dict[str, Any]
"""``input_ids``, ``labels``, ``attention_mask``: int64 [R, W]; ``cu_seqlens``: for each row an int32 array, 0
and the end of each sequence, then W where padding is left; ``max_seqlen``: each row's longest span."""

_STATE_FORMAT = 1


class ModernBertLoader(Iterator[Batch]):
    """The batches of one rank. Iterating never ends, or ends with the one ``epoch`` that is asked for.

    As in the original, an epoch's last sequences are lost where they do not fill a batch. DatasetError where
    an epoch has not even one. form: makes of each batch what is returned.
    """

    def __init__(
        self,
        sequences: Sequences,
        settings: ModernBertSettings,
        *,
        mask_id: int,
        padding_id: int,
        epoch: int | None = None,
        form: Callable[[Batch], Batch] = lambda batch: batch,
        engine: Engine | None = None,
    ) -> None:
        if epoch is not None and epoch < 0:
            raise SettingsError(f"epoch is {epoch}, expected 0 or more")
        if epoch and settings.warmup is not None:
            raise SettingsError(f"epoch {epoch} by itself: the warm-up counts the tokens of those before it")
        self._sequences, self._settings, self._engine = sequences, settings, engine
        self._ids = {"mask_id": mask_id, "padding_id": padding_id}
        self._only, self._warmup, self._form = epoch, BatchWarmup(settings), form
        self._tokens = 0
        self._begin(epoch or 0)

    def _begin(self, epoch: int) -> None:
        """Stand before the first batch of an epoch."""
        self._epoch, self._batch = epoch, 0
        self._order = find_order(len(self._sequences.lengths), epoch, self._settings, self._engine)
        self._lengths = np.minimum(self._sequences.lengths[self._order], self._settings.max_seq_len)
        self._packer: EpochPacker = make_packer(self._lengths, self._settings, self._engine)
        self._masks: Masks = make_masks(epoch, self._settings, **self._ids, engine=self._engine)

    def __next__(self) -> Batch:
        packed = self._packer.pack(self._warmup.rows(self._tokens))
        while packed is None:
            if self._only is not None:
                raise StopIteration
            if not self._batch:
                raise DatasetError(
                    f"{len(self._lengths)} examples of a rank do not fill a batch of {self._settings.rows} rows; "
                    "a smaller batch_size has fewer"
                )
            self._begin(self._epoch + 1)
            packed = self._packer.pack(self._warmup.rows(self._tokens))
        self._batch += 1
        return self._form(self._make(packed))

    def _make(self, packed: PackedRows) -> Batch:
        places, row_ends = np.asarray(packed.places, np.int64), np.asarray(packed.ends, np.int64)
        ids = self._sequences.take(self._order[places], self._settings.max_seq_len)
        ends = np.cumsum(self._lengths[places])
        token_ends = ends[row_ends - 1]
        made = self._masks.draw(ids, token_ends, self._settings.width)
        self._tokens += int(np.sum(made.attention))
        spans = _spans(ends, row_ends, self._settings.width)
        return {
            "input_ids": made.ids,
            "labels": made.labels,
            "attention_mask": made.attention,
            "cu_seqlens": spans,
            "max_seqlen": [int(np.diff(own).max()) for own in spans],
        }

    def state_dict(self) -> dict[str, Any]:
        """The state behind the batch that came last, as values of JSON: at most ``buffer_size`` numbers."""
        packer, (stream, half) = self._packer.state, self._masks.state
        return {
            "format": _STATE_FORMAT,
            "data": self._sequences.digest,
            "settings": asdict(self._settings),
            "ids": dict(self._ids),
            "epoch": self._epoch,
            "batch": self._batch,
            "tokens": self._tokens,
            "taken": packer.taken,
            "waiting": list(packer.waiting),
            "stream": f"{stream:032x}",
            "half": half,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on behind that state's batch. SettingsError where it is of other data or settings."""
        own = self.state_dict()
        for name in ("format", "data", "settings", "ids"):
            if state.get(name) != own[name]:
                raise SettingsError(
                    f"the state of the loader has {name} {state.get(name)}, this loader {own[name]}; "
                    "give the state to a loader of the same dataset and settings"
                )
        if self._only not in (None, state["epoch"]):
            raise SettingsError(f"the state is of epoch {state['epoch']}, this loader of epoch {self._only}")
        self._begin(state["epoch"])
        self._batch, self._tokens = state["batch"], state["tokens"]
        self._packer.state = PackerState(state["taken"], list(state["waiting"]))
        self._masks.state = int(state["stream"], 16), state["half"]


def _spans(ends: Array, row_ends: Array, width: int) -> list[Array]:
    """For each row 0 and the end of each sequence, then the width where padding is left."""
    found, start, first = [], 0, 0
    for stop in row_ends.tolist():
        own = ends[start:stop] - first
        start, first = stop, int(ends[stop - 1])
        padding = [] if own[-1] == width else [width]
        found.append(np.concatenate([[0], own, padding]).astype(np.int32))
    return found
