"""Batches of tensors: the interface that the model uses, and flat batches, which have hardly any padding.

A flat batch has the tokens of all its sequences end to end in one row. ``trainer.data.row_batches`` has
batches of padded rows, with one sequence per row.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from bertdata.examples.columns import Array
from trainer.data.budgets import Budget, Budgets
from trainer.data.examples import GatheredExamples, gather_examples

_MOST_LISTED = 8  # number of budgets (padded sizes of flat batches) up to which the log lists each

Targets = Mapping[str, Tensor]
"""The columns of a batch that only its learning task knows, such as class labels, by name. They are int32,
with zeros for missing values.

Shapes: B is the number of examples. A column with a value per example has the shape (B,). A column with
several items per example has the shape (B, most), and the numbers of items, shape (B,), are under the name of
the column with their end offsets. With packed rows, which have up to K examples each, the shapes are (B, K)
and (B, K, most). A column with an item per token id has the shape of input_ids.
"""

FlatAttention = Callable[..., Tensor]
"""Attention of each token to the tokens of its sequence. Each device has an implementation.

Arguments: query, key and value, each (T, heads, head size). ends: (N + 1,) int32, 0 and then the row after
each of the N sequences, some of which may be empty. longest: most tokens of a sequence. dropout: share of
the attention weights that are set to 0. scale: factor of query times key, None for (head size)^-1/2. reach:
number of tokens on each side that a token sees, None for its whole sequence. Returns the attended values, in
the shape of query.
"""


class Sequences:
    """The sequences of a batch, with a method that computes attention within each of them.

    This class is for flat batches.

    one_product: layers may compute query, key and value by a single matrix product.
    """

    one_product = True

    def __init__(self, ends: Tensor, longest: int, attention: FlatAttention) -> None:
        self.ends, self.longest, self.attention = ends, longest, attention

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        dropout: float,
        scale: float | None = None,
        reach: int | None = None,
    ) -> Tensor:
        """Return the attention of each token to the tokens of its sequence.

        query, key, value: (T, heads, head size), like the result. dropout: share of the attention weights
        that are set to 0. scale: factor of query times key. None: (head size)^-1/2.
        reach: number of tokens on each side that a token sees. None: its whole sequence.
        """
        return self.attention(query, key, value, self.ends, self.longest, dropout, scale, reach)


class Batch(ABC):
    """Base class of batches: the sequences of a micro-batch as tensors.

    Tensors are int32, except the weights of masked slots, which are float32: 1, or 0 for an unused slot.

    Inside the model, matrices have a row for each token, including padding. A batch with too few sequences is
    filled up with missing sequences, whose label is -1. A slot is the place for a masked word in a batch.
    """

    __slots__ = ()

    input_ids: Tensor
    token_type_ids: Tensor
    masked_lm_ids: Tensor
    masked_lm_weights: Tensor
    # 1 if the second segment is random, 0 if it follows or there is no such label
    next_sentence_labels: Tensor
    targets: Targets

    @abstractmethod
    def positions(self) -> Tensor:
        """Return each token's position in its sequence, shape (tokens,)."""

    @abstractmethod
    def starts(self) -> Tensor:
        """Return for each sequence the row of its first token in the model's matrices, shape (sequences,)."""

    @abstractmethod
    def masked(self) -> Tensor:
        """Return the row in the model's matrices of each masked slot, used or not, shape (slots,)."""

    @abstractmethod
    def sequences(self, attention: FlatAttention) -> Sequences:
        """Return the object by which layers compute attention within the sequences.

        attention: the device's function for flat batches. Batches of padded rows do not use it.
        """

    @abstractmethod
    def most_tokens(self) -> int:
        """Return an upper bound of the sequences' lengths."""

    @abstractmethod
    def lengths(self) -> Array:
        """Return the number of tokens of each sequence without padding, int64.

        The batch must be in host memory.
        """

    def __len__(self) -> int:
        return len(self.next_sentence_labels)

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors that are not None by name, in the order of the fields.

        Columns that only the task knows are left out.
        """
        batch: Any = self
        values = {item.name: getattr(batch, item.name) for item in fields(batch)}
        return {name: value for name, value in values.items() if isinstance(value, Tensor)}

    def changed(self, **values: Any) -> Self:
        """Return the batch with some fields replaced."""
        batch: Any = self
        changed: Self = replace(batch, **values)
        return changed

    def map(self, function: Callable[[Tensor], Tensor]) -> Self:
        """Return the batch with the function applied to each tensor that is not None."""
        targets = {name: function(one) for name, one in self.targets.items()}
        return self.changed(targets=targets, **{name: function(one) for name, one in self.tensors().items()})


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FlatBatch(Batch):
    """B sequences in one row of T token ids, padded at the end to one of a few token budgets.

    Each budget is a fixed shape, so compiled devices see only a few shapes. The padding after the last
    sequence is divided into sequences too, so that every token belongs to a sequence. An unused slot has row
    0 and id 0. A missing sequence has no tokens, and its first row is 0.
    """

    input_ids: Tensor  # (T,)
    token_type_ids: Tensor  # (T,)
    position_ids: Tensor  # (T,): each token's position, from 0 in each sequence
    ends: Tensor  # (N + 1,): 0, then the row after each sequence. N > B includes sequences of padding.
    first_rows: Tensor  # (B,): row of each sequence's [CLS]
    masked_lm_rows: Tensor  # (M,)
    masked_lm_ids: Tensor  # (M,)
    masked_lm_weights: Tensor  # (M,)
    next_sentence_labels: Tensor  # (B,)
    longest: int  # most tokens that a sequence of the dataset may have
    tokens: int  # tokens without padding, at most T
    targets: Targets = field(default_factory=dict)

    def positions(self) -> Tensor:
        return self.position_ids

    def starts(self) -> Tensor:
        return self.first_rows

    def masked(self) -> Tensor:
        return self.masked_lm_rows

    def sequences(self, attention: FlatAttention) -> Sequences:
        return Sequences(self.ends, self.longest, attention)

    def most_tokens(self) -> int:
        return self.longest

    def lengths(self) -> Array:
        ends = self.ends.numpy().astype(np.int64)
        # the ends after this are the ends of padding
        return np.diff(ends[: ends.searchsorted(self.tokens, "right")])


Prepare = Callable[[Any], Any]
"""Prepares a batch in the loader's thread, for example by pinning its memory.

Each device has its function.
"""


class Form:
    """Maker of batches from gathered examples (``trainer.data.examples.GatheredExamples``).

    This class makes flat batches, padded to one of the budgets.
    """

    def __init__(self, budgets: Budgets) -> None:
        self.budgets = budgets

    def batches(self, gathered: GatheredExamples, size: int, prepare: Prepare) -> Iterator[Batch]:
        """Yield batches of ``size`` rows. The last batch is filled up with missing examples.

        Yields one batch if there are no examples at all.
        prepare: called with each batch, or with many micro-batches at once.
        """
        assert size == self.budgets.batch_size, f"budgets are for {self.budgets.batch_size}, not {size}"
        for start in range(0, max(gathered.rows, 1), size):
            yield prepare(make_flat_batch(gathered.cut(start, start + size), self.budgets))

    def blanks(self) -> Iterator[Batch]:
        """Yield a batch of missing examples for each usual shape, to compile with.

        Yields nothing if all batches have one shape.
        """
        # the largest shape first, because smaller shapes can reuse its memory
        for budget in reversed(self.budgets.usual):
            yield make_flat_batch(
                gather_examples([], self.budgets.layout, np.arange(0)), self.budgets, budget
            )

    @property
    def sizes_vary(self) -> bool:
        """True if batches have different numbers of tokens."""
        return len({budget.tokens for budget in self.budgets.budgets}) > 1

    def describe(self) -> str:
        """Describe the batches for the log in a few words: flat or padded, and their sizes."""
        sizes = list(dict.fromkeys(f"{budget.tokens:,}" for budget in self.budgets.budgets))
        if len(sizes) > _MOST_LISTED:
            return f"flat, padded to one of {len(sizes)} sizes from {sizes[0]} to {sizes[-1]} tokens"
        listed = f"{', '.join(sizes[:-1])} or {sizes[-1]}" if len(sizes) > 1 else sizes[0]
        return f"flat, padded to {listed} tokens"


def make_flat_batch(gathered: GatheredExamples, budgets: Budgets, budget: Budget | None = None) -> FlatBatch:
    """Return a flat batch of the gathered examples, which come from at most ``budgets.batch_size`` rows.

    The batch does not show which examples shared a row.
    budget: shape of the batch. None: the smallest that fits.
    """
    count, lengths, masks = len(gathered), gathered.lengths, gathered.masks
    tokens, masked = int(lengths.sum()), int(masks.sum())
    budget = budget or budgets.find(tokens, masked, count)
    # Example with lengths [3, 2] and a budget of 8 tokens: ends [0, 3, 5, 8], the last sequence is padding.
    ends = _find_sequence_ends(lengths, tokens, budget)
    # positions: 0 1 2, 0 1, 0 1 2. np.repeat spreads each sequence's start over its tokens.
    sizes, starts = np.diff(ends), ends[:-1]
    positions = np.arange(budget.tokens, dtype=np.int32) - np.repeat(starts, sizes)
    longest = gathered.layout.max_seq_length
    segment_lengths = np.full(budget.sequences, longest, np.int32)
    segment_lengths[:count] = gathered.segment_lengths
    labels = np.full(budgets.examples, -1, np.int32)
    labels[:count] = gathered.pair_labels
    # Masks of the used cells in the windows of ids (N, S) and of masked positions (N, P). A window has a
    # fixed width, so behind an example's end it contains ids of other examples.
    used = np.arange(gathered.ids.shape[1], dtype=np.int32) < lengths[:, np.newaxis]
    in_use = np.arange(gathered.labels.shape[1], dtype=np.int32) < masks[:, np.newaxis]
    rows = gathered.positions + starts[:count, np.newaxis]
    targets = {name: _pad_values(values, budgets.examples) for name, values in gathered.targets.items()}
    targets |= {name: _pad_values(one[used], budget.tokens) for name, one in gathered.token_targets.items()}
    return FlatBatch(
        input_ids=_pad_values(gathered.ids[used], budget.tokens),
        token_type_ids=torch.from_numpy((positions >= np.repeat(segment_lengths, sizes)).astype(np.int32)),
        position_ids=torch.from_numpy(positions),
        ends=torch.from_numpy(ends),
        first_rows=_pad_values(starts[:count], budgets.examples),
        masked_lm_rows=_pad_values(rows[in_use], budget.masks),
        masked_lm_ids=_pad_values(gathered.labels[in_use], budget.masks),
        masked_lm_weights=torch.from_numpy((np.arange(budget.masks) < masked).astype(np.float32)),
        next_sentence_labels=torch.from_numpy(labels),
        longest=longest,
        tokens=tokens,
        targets=targets,
    )


def _find_sequence_ends(lengths: Array, tokens: int, budget: Budget) -> Array:
    """Return the rows at which the sequences of a flat batch end.

    The result has 0, then the row after each example, then the row after each part of the padding.

    The padding is divided into near equal parts, because no sequence may be longer than the model's limit.
    """
    parts = budget.sequences - len(lengths)
    padding = (budget.tokens - tokens) * np.arange(parts + 1) // max(parts, 1)
    starts = np.cumsum(lengths) - lengths
    return np.concatenate([starts, tokens + padding], dtype=np.int32, casting="unsafe")


def _pad_values(values: Array, size: int) -> Tensor:
    """Return the values as an int32 tensor, with zeros up to ``size``."""
    padded = np.zeros((size, *values.shape[1:]), np.int32)
    padded[: len(values)] = values
    return torch.from_numpy(padded)
