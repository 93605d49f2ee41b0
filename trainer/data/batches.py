"""Batches of tensors: the interface that the model uses, and flat batches, which have hardly any padding.

A flat batch has the tokens of all its sequences end to end in one row. ``trainer.data.row_batches`` has
batches of padded rows, with one sequence per row.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from bertdata.examples.columns import Array
from trainer.data.budgets import Budget, Budgets
from trainer.data.examples import GatheredExamples, gather_examples

if TYPE_CHECKING:
    from typing_extensions import Self

# If there are more budgets, that is, sizes to which flat batches are padded, the log does not list each.
_MOST_LISTED = 8

Targets = Mapping[str, Tensor]
"""The columns of a batch that only a learning task uses, such as class labels, by name. They are int32
tensors, with zeros for missing values.

Let B be the number of examples. A column with a value for each example has the shape (B,). A column with up
to P items for each example has the shape (B, P). A further column, named like the dataset's column of end
offsets, has the number of items of each example, with the shape (B,). If rows are packed with up to K
examples each, the shapes are (B, K) and (B, K, P) for B rows. A column with an item for each token id has the
shape of input_ids.
"""

FlatAttention = Callable[..., Tensor]
"""A function that computes the attention of each token to the tokens of its sequence. Each device has its
own.

Arguments:
query, key, value: tensors of shape (T, heads, head size) for T tokens. The result has the same shape.
ends: 0, then for each of the N sequences the row after its last token, int32, shape (N + 1,). A sequence may
be empty.
longest: largest number of tokens in a sequence.
dropout: fraction of the attention weights that are set to 0.
scale: factor for the product of query and key. None means (head size)^-1/2.
reach: number of tokens on each side that a token sees. None means its whole sequence.
"""


class Sequences:
    """Object that says where the sequences of a batch are, and computes attention within each of them.

    This class is for flat batches. A subclass is for batches of padded rows.

    one_product: True if layers may compute query, key and value by a single matrix product.
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

        query, key, value: tensors of shape (T, heads, head size) for T tokens. The result has the same shape.
        dropout: fraction of the attention weights that are set to 0.
        scale: factor for the product of query and key. None means (head size)^-1/2.
        reach: number of tokens on each side that a token sees. None means its whole sequence.
        """
        return self.attention(query, key, value, self.ends, self.longest, dropout, scale, reach)


class Batch(ABC):
    """Base class of batches, which hold the sequences of a micro-batch as tensors.

    A batch has a fixed number of slots for masked words. A slot is unused if there are fewer masked words.
    The weight of a slot is 1, or 0 if the slot is unused. Weights are float32, all other tensors int32. A
    batch with too few sequences is filled up with missing sequences, whose label is -1. Inside the model,
    matrices have a row for each token, including padding.
    """

    __slots__ = ()

    input_ids: Tensor
    token_type_ids: Tensor
    masked_lm_ids: Tensor
    masked_lm_weights: Tensor
    # 1 if the second segment is from another place, 0 if it follows the first or if there is no such label
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
        """Return the object with which the model's layers compute attention within the sequences.

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
        """Return the batch's tensors by name, in the order of its fields. Fields that are None are left out.

        Columns that only the learning task uses (``targets``) are left out too.
        """
        batch: Any = self
        values = {item.name: getattr(batch, item.name) for item in fields(batch)}
        return {name: value for name, value in values.items() if isinstance(value, Tensor)}

    def changed(self, **values: Any) -> "Self":
        """Return the batch with some fields replaced."""
        batch: Any = self
        changed: Self = replace(batch, **values)
        return changed

    def map(self, function: Callable[[Tensor], Tensor]) -> "Self":
        """Return the batch with the function applied to each tensor that is not None."""
        targets = {name: function(one) for name, one in self.targets.items()}
        return self.changed(targets=targets, **{name: function(one) for name, one in self.tensors().items()})


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FlatBatch(Batch):
    """B sequences end to end in one row of T token ids.

    The row is padded at the end to one of a few sizes, the budgets. So a device that compiles the model for
    each shape sees only a few shapes. The padding is divided into sequences too, so that every token belongs
    to a sequence. An unused slot for a masked word has row 0 and id 0. A missing sequence has no tokens, and
    its first row is 0.
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
    longest: int  # largest number of tokens that a sequence of the dataset may have
    tokens: int  # number of tokens without padding, at most T
    targets: Targets = field(default_factory=dict)

    def positions(self) -> Tensor:
        """Return each token's position in its sequence, shape (T,)."""
        return self.position_ids

    def starts(self) -> Tensor:
        """Return the row of the first token of each sequence, shape (B,)."""
        return self.first_rows

    def masked(self) -> Tensor:
        """Return the row of each slot for a masked word, used or not."""
        return self.masked_lm_rows

    def sequences(self, attention: FlatAttention) -> Sequences:
        """Return the object that computes attention with the device's function."""
        return Sequences(self.ends, self.longest, attention)

    def most_tokens(self) -> int:
        """Return the largest number of tokens that a sequence may have."""
        return self.longest

    def lengths(self) -> Array:
        """Return the number of tokens of each sequence, without sequences of padding."""
        ends = self.ends.numpy().astype(np.int64)
        # all later ends belong to sequences of padding
        return np.diff(ends[: ends.searchsorted(self.tokens, "right")])


Prepare = Callable[[Any], Any]
"""A function that the loader's thread calls with each new batch, for example to pin its memory.

Each type of device has a separate function.
"""


class Form:
    """Object that makes batches from gathered examples, that is, from examples that were copied into arrays.

    This class makes flat batches, padded to one of a few sizes, the budgets. A subclass makes padded rows.
    """

    def __init__(self, budgets: Budgets) -> None:
        self.budgets = budgets

    def batches(self, gathered: GatheredExamples, size: int, prepare: Prepare) -> Iterator[Batch]:
        """Yield batches of ``size`` rows from the examples. The last batch is filled up with missing
        examples.

        If there are no examples at all, one batch of missing examples is yielded.
        prepare: function that is called with each batch, or with many micro-batches at once.
        """
        assert size == self.budgets.batch_size, f"budgets are for {self.budgets.batch_size}, not {size}"
        for start in range(0, max(gathered.rows, 1), size):
            yield prepare(make_flat_batch(gathered.slice_rows(start, start + size), self.budgets))

    def make_blank_batches(self) -> Iterator[Batch]:
        """Yield a batch of missing examples for each usual shape of batches, so that the model can be
        compiled for it.

        Nothing is yielded if all batches have the same shape.
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

    The batch does not say which examples were in the same row.
    budgets: the shapes that batches may have.
    budget: shape of this batch. None: the smallest that fits.
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
    # Each of the N examples has a window of fixed width with its ids (N, S), and a window with its masked
    # positions (N, P). The cells after the example's end belong to other examples. These two arrays are True
    # for the example's cells.
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
    """Return 0 and the row after the end of each sequence of a flat batch.

    The padding is divided into sequences of nearly equal length, because no sequence may be longer than the
    model's limit.

    lengths: number of tokens of each example.
    tokens: number of tokens of all examples.
    budget: shape of the batch.
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
