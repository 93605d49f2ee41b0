"""Batches of tensors: flat, or in padded rows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, TypeVar

import torch

Targets = Mapping[str, torch.Tensor]
"""A task's own columns by name, zeros for a missing example: (B,), of packs (B, K), int32."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RowBatch:
    """B rows as tensors: S ids and P masked slots each, padded with zeros.

    A row is an example, or a pack of up to K whose [CLS] stand at ``next_sentence_positions``; the attention
    mask then numbers the examples from 1, and tokens of one number see each other. All are int32 but the
    weights, which are float32: 1, or 0 for an unused slot. A padding row, which fills a batch of fixed shape,
    has weights 0 and the label -1, as has a missing example of a pack.
    """

    input_ids: torch.Tensor  # (B, S)
    token_type_ids: torch.Tensor  # (B, S)
    attention_mask: torch.Tensor  # (B, S)
    masked_lm_positions: torch.Tensor  # (B, P)
    masked_lm_ids: torch.Tensor  # (B, P)
    masked_lm_weights: torch.Tensor  # (B, P)
    next_sentence_labels: torch.Tensor  # (B,), of packs (B, K): 1 where the second segment is random
    position_ids: torch.Tensor | None = None  # (S,) or (B, S): for packs, and devices that need them as input
    next_sentence_positions: torch.Tensor | None = None  # (B, K), for packs
    targets: Targets = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.input_ids)

    def map(self, function: Callable[[torch.Tensor], torch.Tensor]) -> "RowBatch":
        """A batch with the function applied to each tensor that is there."""
        return RowBatch(**_mapped(self, function))

    def cut(self, start: int, stop: int) -> "RowBatch":
        """A view of examples ``start`` to ``stop``; position ids shared by all examples stay whole."""
        cut = self.map(lambda tensor: tensor[start:stop])
        shared = self.position_ids
        return replace(cut, position_ids=shared) if shared is not None and shared.dim() == 1 else cut


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FlatBatch:
    """B sequences in one row of T token ids, padded only at the end, to one of a few token budgets.

    The padding after the last sequence makes up sequences of its own, so that every row belongs to one.
    Shapes depend on the budget alone. Tensors are int32 but the weights, which are float32: 1, or 0 for an
    unused slot, whose row and id are 0. A missing sequence has no tokens, the first row 0 and the label -1.
    """

    input_ids: torch.Tensor  # (T,)
    token_type_ids: torch.Tensor  # (T,)
    position_ids: torch.Tensor  # (T,): from 0 in each sequence
    ends: torch.Tensor  # (N + 1,): 0, then the row after each sequence; N > B counts those of padding
    first_rows: torch.Tensor  # (B,): the row of each sequence's [CLS]
    masked_lm_rows: torch.Tensor  # (M,)
    masked_lm_ids: torch.Tensor  # (M,)
    masked_lm_weights: torch.Tensor  # (M,)
    next_sentence_labels: torch.Tensor  # (B,): 1 where the second segment is random
    longest: int  # most tokens that a sequence of the dataset may have
    tokens: int  # real ones, of T
    targets: Targets = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.first_rows)

    def map(self, function: Callable[[torch.Tensor], torch.Tensor]) -> "FlatBatch":
        """A batch with the function applied to each tensor."""
        return FlatBatch(**_mapped(self, function))


def _mapped(
    batch: "RowBatch | FlatBatch", function: Callable[[torch.Tensor], torch.Tensor]
) -> dict[str, Any]:
    """The fields of a batch, the function applied to each tensor."""
    mapped: dict[str, Any] = {}
    for item in fields(batch):
        value = getattr(batch, item.name)
        if isinstance(value, torch.Tensor):
            value = function(value)
        elif isinstance(value, Mapping):
            value = {name: function(one) for name, one in value.items()}
        mapped[item.name] = value
    return mapped


Batch = RowBatch | FlatBatch
AnyBatch = TypeVar("AnyBatch", RowBatch, FlatBatch)


class Prepare(Protocol):
    """The device's preparation of a batch in the loader's thread, as pinning its memory."""

    def __call__(self, batch: AnyBatch, /) -> AnyBatch: ...
