"""Converts ModernBERT's batches to torch tensors. Needs torch when it is imported."""

import torch

from bertdata.loaders.modernbert.loader import Batch


def convert_to_tensors(batch: Batch) -> Batch:
    """Return the batch with torch tensors, which share the arrays' memory. ``max_seqlen`` stays a list of
    integers.
    """
    rows = {name: torch.from_numpy(batch[name]) for name in ("input_ids", "labels", "attention_mask")}
    return {**batch, **rows, "cu_seqlens": [torch.from_numpy(spans) for spans in batch["cu_seqlens"]]}
