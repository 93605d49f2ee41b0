"""The kit's tiny encoders, and its batches as this trainer's."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from trainer.data.batches import Batch, FlatBatch

IGNORED = -100


class KitBatch:
    """One of a model's batches: padded, flat, and what the original made of it."""

    def __init__(self, place: Path, number: int) -> None:
        with np.load(place / "outputs.npz") as found:
            start = f"batch{number}/"
            self.values: Mapping[str, Tensor] = {
                name.removeprefix(start): torch.from_numpy(found[name])
                for name in found
                if name.startswith(start)
            }

    def expected(self, name: str) -> Tensor:
        """The original's values on the flat batch."""
        return self.values[f"flat/{name}"]

    def flat(self) -> FlatBatch:
        return flat(*(self.expected(name).long() for name in ("input_ids", "cu_seqlens", "labels")))

    def rows(self) -> Batch:
        """Padded rows, a masked slot for each position."""
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
        """(rows * positions,): True for the padded batch's tokens, which are the flat one's in order."""
        return self.values["attention_mask"].reshape(-1).bool()


def flat(ids: Tensor, ends: Tensor, labels: Tensor) -> FlatBatch:
    """The sequences in a row, a masked slot for each token. labels: -100 for one that does not count."""
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
    """Norm and sum of each gradient of batch 0, by transformers' names."""
    found: dict[str, tuple[float, float]] = json.loads((place / "gradients.json").read_text(encoding="utf-8"))
    return found
