"""Flat batches from gathered examples: all tokens in one row, padded to a budget."""

from typing import Any

import numpy as np
import torch

from bertdata.examples.columns import Array
from trainer.data.batches import FlatBatch
from trainer.data.budgets import Budget, Budgets
from trainer.data.compact import GatheredExamples


def flatten(gathered: GatheredExamples, budgets: Budgets, budget: Budget | None = None) -> FlatBatch:
    """A batch of the gathered examples, in at most ``budgets.batch_size`` rows; it does not show the rows.

    budget: by default the smallest that fits. The last sequences of ``ends`` share the padding in near
    equal parts.
    """
    lengths, masks = gathered.lengths, gathered.masks
    tokens, masked = int(lengths.sum()), int(masks.sum())
    budget = budget or budgets.find(tokens, masked, len(gathered))
    ends = _ends(lengths, tokens, budget)
    sizes, starts = np.diff(ends), ends[:-1]
    positions = np.arange(budget.tokens, dtype=np.int32) - np.repeat(starts, sizes)
    first_lengths = np.full(budget.sequences, gathered.layout.max_seq_length, np.int32)
    first_lengths[: len(gathered)] = gathered.first_lengths
    first_rows = np.zeros(budgets.examples, np.int32)
    first_rows[: len(gathered)] = starts[: len(gathered)]
    labels = np.full(budgets.examples, -1, np.int32)
    labels[: len(gathered)] = gathered.next_labels
    used = np.arange(gathered.ids.shape[1], dtype=np.int32) < lengths[:, np.newaxis]
    in_use = np.arange(gathered.labels.shape[1], dtype=np.int32) < masks[:, np.newaxis]
    rows = gathered.positions + starts[: len(gathered), np.newaxis]
    arrays = {
        "input_ids": _padded(gathered.ids[used], budget.tokens),
        "token_type_ids": (positions >= np.repeat(first_lengths, sizes)).astype(np.int32),
        "position_ids": positions,
        "ends": ends,
        "first_rows": first_rows,
        "masked_lm_rows": _padded(rows[in_use], budget.masks),
        "masked_lm_ids": _padded(gathered.labels[in_use], budget.masks),
        "masked_lm_weights": (np.arange(budget.masks) < masked).astype(np.float32),
        "next_sentence_labels": labels,
    }
    tensors: dict[str, Any] = {name: torch.from_numpy(array) for name, array in arrays.items()}
    targets = {
        name: torch.from_numpy(_padded(values, budgets.examples)) for name, values in gathered.targets.items()
    }
    longest = gathered.layout.max_seq_length
    return FlatBatch(**tensors, longest=longest, tokens=tokens, targets=targets)


def _ends(lengths: Array, tokens: int, budget: Budget) -> Array:
    """0, then the row after each sequence: the examples, then those of padding."""
    count = len(lengths)
    ends = np.zeros(budget.sequences + 1, np.int32)
    np.cumsum(lengths, out=ends[1 : count + 1])
    parts = budget.sequences - count
    padding = budget.tokens - tokens
    ends[count + 1 :] = tokens + padding * np.arange(1, parts + 1) // max(parts, 1)
    return ends


def _padded(values: Array, size: int) -> Array:
    padded = np.zeros(size, np.int32)
    padded[: len(values)] = values
    return padded
