"""Attention without padding on NVIDIA's GPUs: one call for sequences of all lengths.

``torch.nn.attention.varlen`` would be the public way, but has no dropout; these are the operations below it.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from trainer.model.layers import FlatAttention
from trainer.model.padded_attention import padded_attention

_STEP = 8
"""Both kernels take heads of a multiple of 8; smaller ones are padded with zeros."""


def flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    ends: Tensor,
    longest: int,
    dropout: float,
    scale: float | None = None,
    reach: int | None = None,
) -> Tensor:
    """Flash attention, for bf16 and fp16. See ``trainer.model.layers.FlatAttention``."""
    size = query.shape[-1]
    scale = size**-0.5 if scale is None else scale
    sides = ("window_size_left", "window_size_right")
    window: dict[str, Any] = {} if reach is None else dict.fromkeys(sides, reach)
    query, key, value = (_pad_heads(part) for part in (query, key, value))
    attended, *_ = torch.ops.aten._flash_attention_forward(
        query, key, value, ends, ends, longest, longest, dropout, False, False, scale=scale, **window
    )
    trimmed: Tensor = attended[..., :size]
    return trimmed


def efficient_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    ends: Tensor,
    longest: int,
    dropout: float,
    scale: float | None = None,
    reach: int | None = None,
) -> Tensor:
    """Memory-efficient attention, for every type. See ``trainer.model.layers.FlatAttention``.

    It has no window on both sides, so that one is cut into blocks, which take a mask.
    """
    if reach is not None:
        return padded_attention(query, key, value, ends, longest, dropout, scale, reach)
    size = query.shape[-1]
    scale = size**-0.5 if scale is None else scale
    query, key, value = (_pad_heads(part)[None] for part in (query, key, value))
    no_bias, no_causal_mask, with_gradients = None, 0, True
    attended, *_ = torch.ops.aten._efficient_attention_forward(
        query,
        key,
        value,
        no_bias,
        ends,
        ends,
        longest,
        longest,
        dropout,
        no_causal_mask,
        with_gradients,
        scale=scale,
    )
    trimmed: Tensor = attended[0, ..., :size]
    return trimmed


KERNELS: dict[str, FlatAttention] = {
    "flash": flash_attention,
    "efficient": efficient_attention,
    "cudnn": padded_attention,
    "math": padded_attention,
}
"""The implementation by kernel; those without sequences of many lengths get them padded for attention."""


def _pad_heads(tensor: Tensor) -> Tensor:
    missing = -tensor.shape[-1] % _STEP
    return F.pad(tensor, (0, missing)) if missing else tensor
