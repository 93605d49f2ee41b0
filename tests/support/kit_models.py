"""The reference kit's tiny encoders, and the kit's batches in this trainer's form."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from trainer.data.batches import Batch, FlatBatch

IGNORED = -100


class KitBatch:
    """A batch for one of the kit's models: padded, flat, and the original program's outputs."""

    def __init__(self, place: Path, number: int) -> None:
        with np.load(place / "outputs.npz") as found:
            start = f"batch{number}/"
            self.values: Mapping[str, Tensor] = {
                name.removeprefix(start): torch.from_numpy(found[name])
                for name in found
                if name.startswith(start)
            }

    def expected(self, name: str) -> Tensor:
        """Return the original program's values for the flat batch."""
        return self.values[f"flat/{name}"]

    def flat(self) -> FlatBatch:
        return flat(*(self.expected(name).long() for name in ("input_ids", "cu_seqlens", "labels")))

    def rows(self) -> Batch:
        """Return the batch as padded rows, with a masked slot for each position."""
        from trainer.data.row_batches import RowBatch

        ids, mask, labels = (self.values[name].int() for name in ("input_ids", "attention_mask", "labels"))
        used = labels != IGNORED
        return RowBatch(
            input_ids=ids,
            token_type_ids=torch.zeros_like(ids),
            attention_mask=mask,
            masked_lm_positions=torch.arange(ids.shape[1]).int().expand(ids.shape),
            masked_lm_ids=torch.where(used, labels, 0).int(),
            masked_lm_weights=used.float(),
            next_sentence_labels=torch.zeros(len(ids)).int(),
        )

    def real(self) -> Tensor:
        """Return (rows * positions,) booleans: True for a token, False for padding."""
        return self.values["attention_mask"].reshape(-1).bool()


def flat(ids: Tensor, ends: Tensor, labels: Tensor) -> FlatBatch:
    """Return a flat batch of the sequences, with a masked slot for each token.

    labels: -100 where the loss ignores the token.
    """
    starts, sizes = ends[:-1], ends.diff()
    used = labels != IGNORED
    return FlatBatch(
        input_ids=ids.int(),
        token_type_ids=torch.zeros_like(ids).int(),
        position_ids=torch.cat([torch.arange(int(size)) for size in sizes]).int(),
        ends=ends.int(),
        first_rows=starts.int(),
        masked_lm_rows=torch.arange(len(ids)).int(),
        masked_lm_ids=torch.where(used, labels, 0).int(),
        masked_lm_weights=used.float(),
        next_sentence_labels=torch.zeros(len(sizes)).int(),
        longest=int(sizes.max()),
        tokens=len(ids),
    )


def gradients(place: Path) -> dict[str, tuple[float, float]]:
    """Return the norm and sum of each gradient of batch 0, by transformers' names."""
    found: dict[str, tuple[float, float]] = json.loads((place / "gradients.json").read_text(encoding="utf-8"))
    return found
