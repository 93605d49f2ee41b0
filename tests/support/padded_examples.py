"""Batches of padded examples, which a test can check row by row.

They are a simple counterpart of the padded rows in ``trainer.data``, without shared code. Tests compare the
two.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from trainer.data.batches import Prepare
from trainer.data.examples import GatheredExamples


@dataclass(frozen=True, kw_only=True)
class PaddedExamples:
    """B examples with S ids and P masked slots each, padded with zeros.

    A missing example has no tokens and the label -1. All tensors are int32, except the weights: float32, 1
    for a used slot and 0 for an unused one. Models do not accept this form. ``tests.support.flat.flatten``
    converts it.
    """

    input_ids: Tensor  # (B, S)
    token_type_ids: Tensor  # (B, S)
    attention_mask: Tensor  # (B, S)
    masked_lm_positions: Tensor  # (B, P)
    masked_lm_ids: Tensor  # (B, P)
    masked_lm_weights: Tensor  # (B, P)
    next_sentence_labels: Tensor  # (B,)

    def __len__(self) -> int:
        return len(self.input_ids)

    def map(self, function: Callable[[Tensor], Tensor]) -> "PaddedExamples":
        return PaddedExamples(**{name: function(tensor) for name, tensor in vars(self).items()})

    def slice_rows(self, start: int, stop: int) -> "PaddedExamples":
        return self.map(lambda tensor: tensor[start:stop])


class PaddedForm:
    """Batch form for Loader and ``load_evaluation_batches`` that pads each example to the layout's length."""

    sizes_vary = False

    def batches(self, gathered: GatheredExamples, size: int, prepare: Prepare) -> Iterator[PaddedExamples]:
        for start in range(0, max(gathered.rows, 1), size):
            yield prepare(pad_examples(gathered.slice_rows(start, start + size), size))

    def blanks(self) -> Iterator[PaddedExamples]:
        return iter(())

    def describe(self) -> str:
        return "padded examples"


def pad_examples(gathered: GatheredExamples, size: int) -> PaddedExamples:
    """Return the gathered examples, followed by missing examples up to ``size``."""
    length, slots = gathered.layout.max_seq_length, gathered.layout.max_predictions_per_seq
    ids, types, real = (np.zeros((size, length), np.int32) for _ in range(3))
    positions, labels = (np.zeros((size, slots), np.int32) for _ in range(2))
    weights = np.zeros((size, slots), np.float32)
    next_labels = np.full(size, -1, np.int32)
    for row in range(len(gathered)):
        tokens, masks = gathered.lengths[row], gathered.masks[row]
        ids[row, :tokens] = gathered.ids[row, :tokens]
        types[row, gathered.segment_lengths[row] : tokens] = 1
        real[row, :tokens] = 1
        positions[row, :masks] = gathered.positions[row, :masks]
        labels[row, :masks] = gathered.labels[row, :masks]
        weights[row, :masks] = 1
        next_labels[row] = gathered.pair_labels[row]
    return PaddedExamples(
        input_ids=torch.from_numpy(ids),
        token_type_ids=torch.from_numpy(types),
        attention_mask=torch.from_numpy(real),
        masked_lm_positions=torch.from_numpy(positions),
        masked_lm_ids=torch.from_numpy(labels),
        masked_lm_weights=torch.from_numpy(weights),
        next_sentence_labels=torch.from_numpy(next_labels),
    )
