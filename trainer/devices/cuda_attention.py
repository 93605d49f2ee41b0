"""Attention for flat batches (all sequences end to end) on NVIDIA's GPUs, in one call for all sequences.

PyTorch's public interface for this, ``torch.nn.attention.varlen``, has no dropout. So this module calls the
internal operations on which that interface is built.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from trainer.data.batches import FlatAttention
from trainer.model.padded_attention import padded_attention

_NO_BIAS, _NO_CAUSAL_MASK = None, 0
_STEP = 8
"""Both kernels need head sizes that are multiples of 8. Other head sizes are padded with zeros."""


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
    """Return the attention within each sequence, by the flash kernel. It takes bf16 and fp16.

    The arguments are explained at ``trainer.data.batches.FlatAttention``.
    """
    size = query.shape[-1]
    scale = size**-0.5 if scale is None else scale
    sides = ("window_size_left", "window_size_right")
    window: dict[str, Any] = {} if reach is None else dict.fromkeys(sides, reach)
    query, key, value = (_pad_heads(part) for part in (query, key, value))
    attended, *_ = torch.ops.aten._flash_attention_forward(
        query, key, value, ends, ends, longest, longest, dropout, False, False, scale=scale, **window
    )
    whole: Tensor = attended[..., :size]
    return whole


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
    """Return the attention within each sequence, by the memory-efficient kernel. It takes fp32, bf16 and
    fp16.

    The arguments are explained at ``trainer.data.batches.FlatAttention``.

    The kernel cannot limit the attention to a window on both sides of a token. If ``reach`` is set, the
    attention is computed in blocks with a mask instead.
    """
    if reach is not None:
        return padded_attention(query, key, value, ends, longest, dropout, scale, reach)
    size = query.shape[-1]
    scale = size**-0.5 if scale is None else scale
    query, key, value = (_pad_heads(part) for part in (query, key, value))
    attended: Tensor = _Efficient.apply(query, key, value, ends, longest, dropout, scale)  # type: ignore[no-untyped-call]
    return attended[..., :size]


class _Efficient(torch.autograd.Function):
    """PyTorch's memory-efficient attention, with a backward pass that PyTorch's compiler can trace.

    PyTorch's own backward operation cannot be traced, because the shape function that PyTorch 2.11 to 2.13
    registers for it lacks an argument.
    """

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        ends: Tensor,
        longest: int,
        dropout: float,
        scale: float,
    ) -> Tensor:
        parts = (query[None], key[None], value[None])
        limits = (ends, ends, longest, longest, dropout)
        keep_sums = True
        output, *kept, _, _ = torch.ops.aten._efficient_attention_forward(
            *parts, _NO_BIAS, *limits, _NO_CAUSAL_MASK, keep_sums, scale=scale
        )
        ctx.save_for_backward(query, key, value, ends, output, *kept)
        ctx.settings = (longest, dropout, scale)
        attended: Tensor = output[0]
        return attended

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        found = compute_efficient_gradients(gradient, *ctx.saved_tensors, *ctx.settings)
        return *found, None, None, None, None


@torch.library.custom_op("bertdata::efficient_gradients", mutates_args=(), device_types="cuda")
def compute_efficient_gradients(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    ends: Tensor,
    output: Tensor,
    sums: Tensor,
    seed: Tensor,
    offset: Tensor,
    longest: int,
    dropout: float,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of query, key and value.

    output, sums, seed, offset: results of PyTorch's forward operation.
    """
    parts = (part[None] for part in (gradient.contiguous(), query, key, value))
    limits = (ends, ends, longest, longest, sums, dropout, seed, offset)
    of_query, of_key, of_value, _ = torch.ops.aten._efficient_attention_backward(
        *parts, _NO_BIAS, output, *limits, _NO_CAUSAL_MASK, False, scale=scale
    )
    return of_query[0], of_key[0], of_value[0]


@compute_efficient_gradients.register_fake
def _make_empty_gradients(gradient: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    of_query, of_key, of_value = (gradient.new_empty(gradient.shape) for _ in range(3))
    return of_query, of_key, of_value


KERNELS: dict[str, FlatAttention] = {
    "flash": flash_attention,
    "efficient": efficient_attention,
    "cudnn": padded_attention,
    "math": padded_attention,
}
"""The function for each attention kernel that can be configured. The kernels cudnn and math cannot take flat
batches (all sequences end to end), so sequences are padded for them.
"""


def _pad_heads(tensor: Tensor) -> Tensor:
    """Pad the last dimension (the head size) with zeros to a multiple of 8."""
    missing = -tensor.shape[-1] % _STEP
    return F.pad(tensor, (0, missing)) if missing else tensor
