"""Batches of tensors: what the model asks of every batch, and flat ones, made of gathered examples."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from bertdata.examples.columns import Array
from trainer.data.budgets import Budget, Budgets
from trainer.data.examples import GatheredExamples, gather

_MOST_LISTED = 8  # budgets named in the log

Targets = Mapping[str, Tensor]
"""A task's own columns by name, int32, zeros for what is missing.

(B,), of packs (B, K): one value an example, or its number of items under the name of their end offsets.
(B, most), of packs (B, K, most): its items. A column with an item for each id has the shape of input_ids.
"""

FlatAttention = Callable[..., Tensor]
"""Attention of each token to the tokens of its own sequence, as each device implements it.

Called with query, key and value, (T, heads, head size) each; ends: (N + 1,) int32, 0 and then the row after
each of the N sequences, some of which may be empty; longest: no sequence has more tokens; dropout, scale and
reach as of ``Sequences.attend``. Returns the attended values, of the same shape.
"""


class Sequences:
    """The sequences of a batch, and attention within them: here without padding, given by their ends.

    one_product: query, key and value may come from one product.
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
        """The attended values.

        scale: the factor of query times key; None stands for (head size)^-1/2. reach: tokens that a token
        sees on each side; None: its whole sequence.
        """
        return self.attention(query, key, value, self.ends, self.longest, dropout, scale, reach)


class Batch(ABC):
    """Sequences as tensors, int32 except the weights: float32, 1, or 0 for an unused slot.

    The model's matrices have a row for each token, padding included. A missing sequence, which fills a
    batch, has the label -1.
    """

    __slots__ = ()

    input_ids: Tensor
    token_type_ids: Tensor
    masked_lm_ids: Tensor
    masked_lm_weights: Tensor
    next_sentence_labels: Tensor  # 1 where the second segment is random; 0 without such a label
    targets: Targets

    @abstractmethod
    def positions(self) -> Tensor:
        """Return (tokens,): each token's position in its sequence."""

    @abstractmethod
    def starts(self) -> Tensor:
        """Return (sequences,): the row of each sequence's first token."""

    @abstractmethod
    def masked(self) -> Tensor:
        """Return (slots,): the row of each masked slot, used or not."""

    @abstractmethod
    def sequences(self, attention: FlatAttention) -> Sequences:
        """Return the sequences, within which tokens attend to each other.

        attention: used where the batch has no padding.
        """

    @abstractmethod
    def most_tokens(self) -> int:
        """Return the length that no sequence exceeds."""

    @abstractmethod
    def lengths(self) -> Array:
        """Return the real tokens of each sequence of a batch in host memory, int64."""

    def __len__(self) -> int:
        return len(self.next_sentence_labels)

    def tensors(self) -> dict[str, Tensor]:
        """The tensors that are there, by name and in order, without the task's own columns."""
        batch: Any = self
        values = {item.name: getattr(batch, item.name) for item in fields(batch)}
        return {name: value for name, value in values.items() if isinstance(value, Tensor)}

    def changed(self, **values: Any) -> Self:
        """The batch with other values in the place of some of its own."""
        batch: Any = self
        changed: Self = replace(batch, **values)
        return changed

    def map(self, function: Callable[[Tensor], Tensor]) -> Self:
        """A batch with the function applied to each tensor that is there."""
        targets = {name: function(one) for name, one in self.targets.items()}
        return self.changed(targets=targets, **{name: function(one) for name, one in self.tensors().items()})


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FlatBatch(Batch):
    """B sequences in one row of T token ids, padded only at the end, to one of a few token budgets.

    The padding after the last sequence makes up sequences of its own, so that every row belongs to one.
    Shapes depend on the budget alone. An unused slot has the row 0 and the id 0; a missing sequence has no
    tokens and the first row 0.
    """

    input_ids: Tensor  # (T,)
    token_type_ids: Tensor  # (T,)
    position_ids: Tensor  # (T,): from 0 in each sequence
    ends: Tensor  # (N + 1,): 0, then the row after each sequence; N > B counts those of padding
    first_rows: Tensor  # (B,): the row of each sequence's [CLS]
    masked_lm_rows: Tensor  # (M,)
    masked_lm_ids: Tensor  # (M,)
    masked_lm_weights: Tensor  # (M,)
    next_sentence_labels: Tensor  # (B,)
    longest: int  # most tokens that a sequence of the dataset may have
    tokens: int  # real ones, of T
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
        return np.diff(ends[: ends.searchsorted(self.tokens, "right")])  # later ones are padding's


Prepare = Callable[[Any], Any]
"""The device's preparation of a batch in the loader's thread, as pinning its memory. Returns one like it."""


class Form:
    """Batches made of gathered examples: here all tokens in one row, padded to one of the budgets."""

    def __init__(self, budgets: Budgets) -> None:
        self.budgets = budgets

    def batches(self, gathered: GatheredExamples, size: int, prepare: Prepare) -> Iterator[Batch]:
        """The gathered examples, ``size`` rows to a batch, of which the last is filled with missing ones.

        None at all make one batch. prepare: called with each, or with many at once.
        """
        assert size == self.budgets.batch_size, f"budgets are for {self.budgets.batch_size}, not {size}"
        for start in range(0, max(gathered.rows, 1), size):
            yield prepare(flatten(gathered.cut(start, start + size), self.budgets))

    def blanks(self) -> Iterator[Batch]:
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
    count, lengths, masks = len(gathered), gathered.lengths, gathered.masks
    tokens, masked = int(lengths.sum()), int(masks.sum())
    budget = budget or budgets.find(tokens, masked, count)
    ends = _ends(lengths, tokens, budget)
    sizes, starts = np.diff(ends), ends[:-1]
    positions = np.arange(budget.tokens, dtype=np.int32) - np.repeat(starts, sizes)
    longest = gathered.layout.max_seq_length
    segment_lengths = np.full(budget.sequences, longest, np.int32)
    segment_lengths[:count] = gathered.segment_lengths
    labels = np.full(budgets.examples, -1, np.int32)
    labels[:count] = gathered.pair_labels
    used = np.arange(gathered.ids.shape[1], dtype=np.int32) < lengths[:, np.newaxis]
    in_use = np.arange(gathered.labels.shape[1], dtype=np.int32) < masks[:, np.newaxis]
    rows = gathered.positions + starts[:count, np.newaxis]
    targets = {name: _padded(values, budgets.examples) for name, values in gathered.targets.items()}
    targets |= {name: _padded(one[used], budget.tokens) for name, one in gathered.token_targets.items()}
    return FlatBatch(
        input_ids=_padded(gathered.ids[used], budget.tokens),
        token_type_ids=torch.from_numpy((positions >= np.repeat(segment_lengths, sizes)).astype(np.int32)),
        position_ids=torch.from_numpy(positions),
        ends=torch.from_numpy(ends),
        first_rows=_padded(starts[:count], budgets.examples),
        masked_lm_rows=_padded(rows[in_use], budget.masks),
        masked_lm_ids=_padded(gathered.labels[in_use], budget.masks),
        masked_lm_weights=torch.from_numpy((np.arange(budget.masks) < masked).astype(np.float32)),
        next_sentence_labels=torch.from_numpy(labels),
        longest=longest,
        tokens=tokens,
        targets=targets,
    )


def _ends(lengths: Array, tokens: int, budget: Budget) -> Array:
    """0, then the row after each sequence: the examples, then those of padding."""
    parts = budget.sequences - len(lengths)
    padding = (budget.tokens - tokens) * np.arange(parts + 1) // max(parts, 1)
    starts = np.cumsum(lengths) - lengths
    return np.concatenate([starts, tokens + padding], dtype=np.int32, casting="unsafe")


def _padded(values: Array, size: int) -> Tensor:
    padded = np.zeros((size, *values.shape[1:]), np.int32)
    padded[: len(values)] = values
    return torch.from_numpy(padded)
