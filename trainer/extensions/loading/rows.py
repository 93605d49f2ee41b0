"""Row batches from gathered examples: each example padded to S ids and P masked slots."""

from typing import Any

import numpy as np
import torch

from bertdata.examples.columns import Array
from trainer.data.batches import RowBatch
from trainer.data.compact import GatheredExamples


def pad_rows(gathered: GatheredExamples, count: int) -> RowBatch:
    """A batch of ``count`` rows: the gathered examples, then missing ones (zeros with the label -1).

    The gathered arrays are changed in place.
    """
    layout = gathered.layout
    slot = np.arange(layout.max_seq_length, dtype=np.int32)
    used = slot < gathered.lengths[:, np.newaxis]
    second = used & (slot >= gathered.first_lengths[:, np.newaxis])
    masked = np.arange(layout.max_predictions_per_seq, dtype=np.int32) < gathered.masks[:, np.newaxis]
    arrays = {
        "input_ids": np.multiply(gathered.ids, used, out=gathered.ids),
        "token_type_ids": second.astype(np.int32),
        "attention_mask": used.astype(np.int32),
        "masked_lm_positions": np.multiply(gathered.positions, masked, out=gathered.positions),
        "masked_lm_ids": np.multiply(gathered.labels, masked, out=gathered.labels),
        "masked_lm_weights": masked.astype(np.float32),
        "next_sentence_labels": gathered.next_labels,
    }
    if count > len(gathered):
        arrays = {name: _lengthen(array, count) for name, array in arrays.items()}
        arrays["next_sentence_labels"][len(gathered) :] = -1
    tensors: dict[str, Any] = {name: torch.from_numpy(array) for name, array in arrays.items()}
    targets = {name: torch.from_numpy(_lengthen(values, count)) for name, values in gathered.targets.items()}
    return RowBatch(**tensors, targets=targets)


def _lengthen(array: Array, count: int) -> Array:
    longer = np.zeros((count, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
