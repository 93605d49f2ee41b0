"""Batches made of gathered examples, here flat: all tokens in one row, padded to a budget."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from bertdata.examples.columns import Array
from trainer.data.batches import FlatBatch, Prepare
from trainer.data.budgets import Budget, Budgets, find_budgets
from trainer.data.dealing import Rows, group_size
from trainer.data.examples import GatheredExamples, gather
from trainer.registry import find

_MOST_LISTED = 8  # budgets named in the log


def make_form(
    rows: Rows,
    *,
    batch_size: int,
    padded: bool = False,
    token_budget: int | None = None,
    micro_batches: int = 1,
    few_widths: bool = False,
) -> "Form":
    """The form of a Loader's batches of these rows: flat, with budgets that suit them, or padded rows.

    batch_size: rows of a micro-batch. token_budget: that of ``budgets.find_budgets``. micro_batches: of all
    workers in an update. few_widths: padded rows from bins have at most as many widths as there are bins.
    """
    if padded:
        form: Form = find("batches", "of padded rows")(rows, few_widths)
        return form
    group = group_size(micro_batches, batch_size) if rows.by_lengths else 1
    sizes, layout = rows.sizes(), rows.layout
    found = find_budgets(sizes, layout, batch_size, token_budget=token_budget, group=group, bins=rows.bins)
    return Form(found)


class Form:
    """Batches made of gathered examples: here all tokens in one row, padded to one of the budgets."""

    def __init__(self, budgets: Budgets) -> None:
        self.budgets = budgets

    def batches(self, gathered: GatheredExamples, size: int, prepare: Prepare) -> Iterator[Any]:
        """The gathered examples, ``size`` rows to a batch, of which the last is filled with missing ones.

        None at all make one batch. prepare: called with each, or with many at once.
        """
        assert size == self.budgets.batch_size, f"budgets are for {self.budgets.batch_size}, not {size}"
        for start in range(0, max(gathered.rows, 1), size):
            yield prepare(flatten(gathered.cut(start, start + size), self.budgets))

    def blanks(self) -> Iterator[Any]:
        """A batch of missing examples of each usual shape. None where all batches have the same shape."""
        for budget in reversed(self.budgets.usual):  # the largest first: its memory serves the others
            yield flatten(gather([], self.budgets.layout, np.arange(0)), self.budgets, budget)

    @property
    def sizes_vary(self) -> bool:
        """True if batches are of several sizes, counted in tokens."""
        return len({budget.tokens for budget in self.budgets.budgets}) > 1

    def describe(self) -> str:
        """The form in a few words, for the log."""
        sizes = list(dict.fromkeys(f"{budget.tokens:,}" for budget in self.budgets.budgets))
        if len(sizes) > _MOST_LISTED:
            return f"flat, padded to one of {len(sizes)} sizes from {sizes[0]} to {sizes[-1]} tokens"
        listed = f"{', '.join(sizes[:-1])} or {sizes[-1]}" if len(sizes) > 1 else sizes[0]
        return f"flat, padded to {listed} tokens"


def flatten(gathered: GatheredExamples, budgets: Budgets, budget: Budget | None = None) -> FlatBatch:
    """A batch of the gathered examples, in at most ``budgets.batch_size`` rows. It does not show the rows.

    budget: by default the smallest that fits. The last sequences of ``ends`` share the padding in near
    equal parts.
    """
    lengths, masks = gathered.lengths, gathered.masks
    tokens, masked = int(lengths.sum()), int(masks.sum())
    budget = budget or budgets.find(tokens, masked, len(gathered))
    ends = _ends(lengths, tokens, budget)
    sizes, starts = np.diff(ends), ends[:-1]
    positions = np.arange(budget.tokens, dtype=np.int32) - np.repeat(starts, sizes)
    segment_lengths = np.full(budget.sequences, gathered.layout.max_seq_length, np.int32)
    segment_lengths[: len(gathered)] = gathered.segment_lengths
    first_rows = np.zeros(budgets.examples, np.int32)
    first_rows[: len(gathered)] = starts[: len(gathered)]
    labels = np.full(budgets.examples, -1, np.int32)
    labels[: len(gathered)] = gathered.pair_labels
    used = np.arange(gathered.ids.shape[1], dtype=np.int32) < lengths[:, np.newaxis]
    in_use = np.arange(gathered.labels.shape[1], dtype=np.int32) < masks[:, np.newaxis]
    rows = gathered.positions + starts[: len(gathered), np.newaxis]
    arrays = {
        "input_ids": _padded(gathered.ids[used], budget.tokens),
        "token_type_ids": (positions >= np.repeat(segment_lengths, sizes)).astype(np.int32),
        "position_ids": positions,
        "ends": ends,
        "first_rows": first_rows,
        "masked_lm_rows": _padded(rows[in_use], budget.masks),
        "masked_lm_ids": _padded(gathered.labels[in_use], budget.masks),
        "masked_lm_weights": (np.arange(budget.masks) < masked).astype(np.float32),
        "next_sentence_labels": labels,
    }
    tensors: dict[str, Any] = {name: torch.from_numpy(array) for name, array in arrays.items()}
    targets = {name: _padded(values, budgets.examples) for name, values in gathered.targets.items()}
    targets |= {name: _padded(one[used], budget.tokens) for name, one in gathered.token_targets.items()}
    longest = gathered.layout.max_seq_length
    own = {name: torch.from_numpy(values) for name, values in targets.items()}
    return FlatBatch(**tensors, longest=longest, tokens=tokens, targets=own)


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
    padded = np.zeros((size, *values.shape[1:]), np.int32)
    padded[: len(values)] = values
    return padded
