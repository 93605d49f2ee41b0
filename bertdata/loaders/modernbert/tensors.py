"""ModernBERT's batches as tensors. Needs torch when it is imported."""

import torch

from bertdata.loaders.modernbert.loader import Batch


def as_tensors(batch: Batch) -> Batch:
    """The batch with tensors for its arrays, whose memory they share. ``max_seqlen`` stays a list of ints."""
    rows = {name: torch.from_numpy(batch[name]) for name in ("input_ids", "labels", "attention_mask")}
    return {**batch, **rows, "cu_seqlens": [torch.from_numpy(spans) for spans in batch["cu_seqlens"]]}
