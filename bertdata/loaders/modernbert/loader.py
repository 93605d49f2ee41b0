"""Iterator over ModernBERT's batches, one epoch after another. Its state can be stored to resume later.

Needs NumPy when it is imported.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from bertdata._native import Engine
from bertdata.errors import DatasetError, SettingsError
from bertdata.examples.columns import Array
from bertdata.loaders.modernbert.epoch import ModernBertEpoch, PackedBatch, SpecialIds
from bertdata.loaders.modernbert.packer import PackerState
from bertdata.loaders.modernbert.settings import ModernBertSettings
from bertdata.loaders.modernbert.warmup import BatchWarmup
from bertdata.loaders.sequences import IndexedSequences

Batch = dict[str, Any]
"""One batch, with ModernBERT's names.

``input_ids``: int64 array of shape (rows, width), with masks applied.
``labels``: int64 array of shape (rows, width), the ids to predict.
``attention_mask``: int64 array of shape (rows, width), 1 for text and 0 for padding.
``cu_seqlens``: for each row an int32 array with 0, the end of each sequence, and the width if the row has
padding.
``max_seqlen``: for each row the largest difference between neighbouring numbers of its ``cu_seqlens``.
"""

_STATE_FORMAT = 1


class ModernBertLoader(Iterator[Batch]):
    """Iterator over the batches of one rank (process of distributed training).

    It never ends, unless a single ``epoch`` is asked for. As in the original program, sequences at the end of
    an epoch are lost if they do not fill a batch. Raises DatasetError if an epoch has no full batch at all.
    """

    def __init__(
        self,
        sequences: IndexedSequences,
        settings: ModernBertSettings,
        *,
        mask_id: int,
        padding_id: int,
        epoch: int | None = None,
        engine: Engine | None = None,
    ) -> None:
        if epoch is not None and epoch < 0:
            raise SettingsError(f"epoch is {epoch}, expected 0 or more")
        if epoch and settings.warmup is not None:
            raise SettingsError(f"epoch {epoch} by itself: the warm-up counts the tokens of those before it")
        self._sequences, self._settings, self._engine = sequences, settings, engine
        self._ids = SpecialIds(mask_id=mask_id, padding_id=padding_id)
        self._only, self._warmup = epoch, BatchWarmup(settings)
        self.form: Callable[[Batch], Batch] = lambda batch: batch
        """Function applied to each batch before it is returned, for example to convert arrays to tensors."""
        self._tokens = 0
        self._begin_epoch(epoch or 0)

    def _begin_epoch(self, epoch: int) -> None:
        """Start an epoch. Its first batch is the next one."""
        self._epoch = ModernBertEpoch(self._sequences, self._settings, self._ids, epoch, self._engine)
        self._batch = 0

    def __next__(self) -> Batch:
        packed = self._epoch.pack(self._warmup.rows(self._tokens))
        # ``pack`` returns None at the end of the epoch, and the next epoch begins. If the epoch had no full
        # batch at all, this is an error, because the loop would never end.
        while packed is None:
            if self._only is not None:
                raise StopIteration
            if not self._batch:
                raise make_no_full_batch_error(self._epoch, self._settings)
            self._begin_epoch(self._epoch.number + 1)
            packed = self._epoch.pack(self._warmup.rows(self._tokens))
        self._batch += 1
        return self.form(self._make_batch(packed))

    def _make_batch(self, packed: PackedBatch) -> Batch:
        made = self._epoch.mask(packed, self._epoch.take(packed))
        self._tokens += made.tokens
        spans, longest = find_spans(packed, self._settings.width)
        return {
            "input_ids": made.ids,
            "labels": made.labels,
            "attention_mask": made.attention,
            "cu_seqlens": spans,
            "max_seqlen": longest,
        }

    def state_dict(self) -> dict[str, Any]:
        """Return the loader's state after the last batch, in values that JSON can store.

        Sequences that were read but not packed yet are stored by their numbers, at most ``buffer_size`` of
        them.
        """
        packer, (stream, half) = self._epoch.packer.state, self._epoch.masks.state
        return {
            "format": _STATE_FORMAT,
            "data": self._sequences.digest,
            "settings": asdict(self._settings),
            "ids": asdict(self._ids),
            "epoch": self._epoch.number,
            "batch": self._batch,
            "tokens": self._tokens,
            "taken": packer.taken,
            "waiting": list(packer.waiting),
            "stream": f"{stream:032x}",
            "half": half,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue after the batch at which ``state_dict`` returned this state.

        Raises SettingsError if the state belongs to another dataset or to other settings.
        """
        current = self.state_dict()
        for name in ("format", "data", "settings", "ids"):
            if state.get(name) != current[name]:
                raise SettingsError(
                    f"the state of the loader has {name} {state.get(name)}, this loader {current[name]}; "
                    "give the state to a loader of the same dataset and settings"
                )
        if self._only not in (None, state["epoch"]):
            raise SettingsError(f"the state is of epoch {state['epoch']}, this loader of epoch {self._only}")
        self._begin_epoch(state["epoch"])
        self._batch, self._tokens = state["batch"], state["tokens"]
        self._epoch.packer.state = PackerState(state["taken"], list(state["waiting"]))
        self._epoch.masks.state = int(state["stream"], 16), state["half"]


def make_no_full_batch_error(epoch: ModernBertEpoch, settings: ModernBertSettings) -> DatasetError:
    """Make the error that is raised for an epoch without any full batch."""
    return DatasetError(
        f"{len(epoch)} examples of a rank do not fill a batch of {settings.rows} rows of {settings.width} "
        "ids; take more examples, or smaller batches"
    )


def find_spans(packed: PackedBatch, width: int) -> tuple[list[Array], list[int]]:
    """Return where the sequences of each row end (``cu_seqlens``), and the longest span of each row.

    The numbers of a row are 0, the end of each sequence, and the width if the row has padding. A span lies
    between two neighbouring numbers. For example, a row of width 10 with sequences of 4 and 3 ids has the
    numbers [0, 4, 7, 10], and its longest span has 4 positions.
    """
    tokens, counts = np.diff(packed.token_ends, prepend=0), np.diff(packed.row_ends, prepend=0)
    # The numbers of all rows are computed in one array. A row has one number for each sequence, one for the
    # leading 0, and one for the width if it has padding.
    # ends: for each row, the index in that array after the row's last number.
    ends = np.cumsum(counts + 1 + (tokens < width))
    firsts = np.insert(ends[:-1], 0, 0)
    numbers = np.zeros(int(ends[-1]), np.int32)
    # The last number of every row is the width. If a row has no padding, its last sequence ends there.
    numbers[ends - 1] = width
    # The number of sequence i of a row is at index i + 1, after the row's leading 0. It is the sum of all
    # lengths up to this sequence, minus the number of ids in all rows before.
    places = np.arange(len(packed.lengths)) + np.repeat(firsts + 1 - (packed.row_ends - counts), counts)
    numbers[places] = np.cumsum(packed.lengths) - np.repeat(packed.token_ends - tokens, counts)
    # Take the largest difference in each row. At a row's leading 0 the difference is negative or 0, so it is
    # never the largest.
    longest = np.maximum.reduceat(np.diff(numbers, prepend=0), firsts)
    rows = [numbers[first:end] for first, end in zip(firsts.tolist(), ends.tolist(), strict=True)]
    return rows, longest.tolist()
