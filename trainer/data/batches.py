"""Batches of tensors: what the model asks of every batch, and the flat one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np
from torch import Tensor

from bertdata.examples.columns import Array

Targets = Mapping[str, Tensor]
"""A task's own columns by name, int32, zeros for what is missing.

(B,), of packs (B, K): one value an example, or its number of items under the name of their end offsets.
(B, most), of packs (B, K, most): its items. A column with an item for each id has the shape of input_ids.
"""


class Sequences:
    """The sequences of a batch, and attention within them: here without padding, given by their ends.

    one_product: query, key and value may come from one product.
    """

    one_product = True

    def __init__(self, ends: Tensor, longest: int, attention: Callable[..., Tensor]) -> None:
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
        """The attended values, (tokens, heads, head size) like query, key and value.

        scale: the factor of query times key; None stands for (head size)^-1/2. reach: tokens that a token
        sees on each side; None: its whole sequence.
        """
        return self.attention(query, key, value, self.ends, self.longest, dropout, scale, reach)


class Batch:
    """Sequences as tensors, int32 but the weights: float32, 1, or 0 for an unused slot.

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

    positions: Callable[[], Tensor]  # (tokens,): each token's position in its sequence
    starts: Callable[[], Tensor]  # (sequences,): the row of each sequence's first token
    masked: Callable[[], Tensor]  # (slots,): the row of each masked slot, used or not
    sequences: Callable[[Callable[..., Tensor]], Sequences]  # of attention without padding
    most_tokens: Callable[[], int]  # the length that no sequence exceeds
    lengths: Callable[[], Array]  # real tokens of each sequence of a batch in host memory, int64

    def __len__(self) -> int:
        return len(self.next_sentence_labels)

    def there(self) -> Tensor:
        """(sequences,): True, or False for one that is missing. Of packs (B, K)."""
        return self.next_sentence_labels >= 0

    def tensors(self) -> dict[str, Tensor]:
        """The tensors that are there, by name and in order, without the task's own columns."""
        batch: Any = self
        values = {item.name: getattr(batch, item.name) for item in fields(batch)}
        return {name: value for name, value in values.items() if isinstance(value, Tensor)}

    def changed(self, **values: Any) -> Self:
        """The batch with other values in the place of some of its own."""
        batch: Any = self
        made: Self = replace(batch, **values)
        return made

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

    def sequences(self, attention: Callable[..., Tensor]) -> Sequences:
        return Sequences(self.ends, self.longest, attention)

    def most_tokens(self) -> int:
        return self.longest

    def lengths(self) -> Array:
        ends = self.ends.numpy().astype(np.int64)
        real = int(ends.searchsorted(self.tokens, "right"))  # later ones are padding's
        found: Array = ends[1:real] - ends[: real - 1]
        return found


Prepare = Callable[[Any], Any]
"""The device's preparation of a batch in the loader's thread, as pinning its memory. Returns one like it."""
