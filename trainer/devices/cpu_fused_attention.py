"""Attention without dropout on the CPU, by PyTorch's fused kernel, which is twice as fast as separate
operations.

Sequences are computed one after the other, and long ones in blocks. For PyTorch's compiler this loop is a
single operation. Attention with dropout is in ``trainer.devices.cpu``.
"""

import itertools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from trainer.devices.window_blocks import iterate_masked_blocks
from trainer.model.layers import EVERY

_forward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


@torch.library.custom_op("bertdata::fused_attention", mutates_args=(), device_types="cpu")
def attend_fused(
    query: Tensor, key: Tensor, value: Tensor, ends: Tensor, scale: float, reach: int
) -> tuple[Tensor, Tensor]:
    """Return softmax(scale * query @ key.T) @ value, and for each row the logarithm of its softmax's
    denominator.

    ends: 0, then for each sequence the row after its last token.
    reach: number of tokens that a token sees on each side. EVERY: the whole sequence.
    """
    output, sums = _make_empty_outputs(query)
    with torch.autocast("cpu", enabled=False):
        for rows, seen, mask in _iterate_blocks(ends, reach, query.dtype):
            parts = (query[rows], key[seen], value[seen])
            found, logarithms = _forward(
                *map(_move_heads_first, parts), 0.0, False, attn_mask=mask, scale=scale
            )
            output[rows] = found[0].transpose(0, 1)
            sums[rows] = logarithms[0].transpose(0, 1)
    return output, sums


@torch.library.custom_op("bertdata::fused_attention_backward", mutates_args=(), device_types="cpu")
def attend_fused_backward(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    ends: Tensor,
    output: Tensor,
    sums: Tensor,
    scale: float,
    reach: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of query, key and value.

    output, sums: the two results of ``attend_fused``.
    """
    of_query, of_key, of_value = (torch.zeros(query.shape, dtype=query.dtype) for _ in range(3))
    with torch.autocast("cpu", enabled=False):
        for rows, seen, mask in _iterate_blocks(ends, reach, query.dtype):
            parts = (gradient[rows], query[rows], key[seen], value[seen], output[rows])
            given = (*map(_move_heads_first, parts), sums[rows].transpose(0, 1)[None])
            found = _backward(*given, 0.0, False, attn_mask=mask, scale=scale)
            for whole, place, part in zip(
                (of_query, of_key, of_value), (rows, seen, seen), found, strict=True
            ):
                whole[place] += part[0].transpose(0, 1)
    return of_query, of_key, of_value


def _make_empty_outputs(query: Tensor) -> tuple[Tensor, Tensor]:
    """Return uninitialised results of ``attend_fused`` with the right shapes."""
    wide = query.dtype if query.dtype == torch.float64 else torch.float32
    sums = torch.empty(query.shape[:2], dtype=wide, device=query.device)
    return torch.empty_like(query, memory_format=torch.contiguous_format), sums


@attend_fused.register_fake
def _make_fake_outputs(query: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    return _make_empty_outputs(query)


@attend_fused_backward.register_fake
def _make_empty_gradients(gradient: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    return (
        _make_empty_outputs(gradient)[0],
        _make_empty_outputs(gradient)[0],
        _make_empty_outputs(gradient)[0],
    )


def _keep_for_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    """Store inputs and results of the attention in ``ctx``, where the backward pass reads them."""
    *tensors, ctx.scale, ctx.reach = inputs
    ctx.save_for_backward(*tensors, *output)
    ctx.mark_non_differentiable(output[1])


def _compute_gradients(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    """Return the gradient of each argument of ``attend_fused``, or None for an argument that is not a tensor
    to train.
    """
    gradients = attend_fused_backward(gradient, *ctx.saved_tensors, ctx.scale, ctx.reach)
    return *gradients, None, None, None


attend_fused.register_autograd(_compute_gradients, setup_context=_keep_for_backward)


def _iterate_blocks(
    ends: Tensor, reach: int, dtype: torch.dtype
) -> Iterator[tuple[slice, slice, Tensor | None]]:
    """Yield the blocks in which the attention is computed, one after the other.

    Each item is (rows whose attention is computed, rows that they attend to, numbers to add to the scores).
    The numbers are minus infinity for rows out of reach. They are None if all rows are within reach.
    """
    bounds = ends.tolist()
    if reach != EVERY:
        for rows, seen, mask in iterate_masked_blocks(bounds, reach):
            yield rows, seen, None if mask is None else mask.to(dtype)[None, None]
        return
    for start, end in itertools.pairwise(bounds):
        if start < end:
            yield slice(start, end), slice(start, end), None


def _move_heads_first(tensor: Tensor) -> Tensor:
    """Return a view of a (rows, heads, head size) tensor with shape (1, heads, rows, head size), as PyTorch's
    kernel takes it.
    """
    return tensor.transpose(0, 1)[None]
