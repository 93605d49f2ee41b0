"""Counting of floating-point operations on tensors in host memory, to forecast the work of another device.

The tensors may be fake (shapes without values). This module also registers the operations of the CPU's
attention with PyTorch's counter.
"""

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode, register_flop_formula

from trainer.devices import cpu_fused_attention  # noqa: F401 - its operations are counted
from trainer.devices.cpu import cpu_attention
from trainer.devices.window_blocks import count_scored_pairs
from trainer.model.layers import EVERY

HOST = torch.device("cpu")
host_attention = cpu_attention
"""The CPU's attention, which computes nothing for padding. Forecasts count its operations."""


def make_host_autocast(dtype: torch.dtype) -> AbstractContextManager[object]:
    """Return the context manager for a forward pass on the CPU that multiplies matrices in this type."""
    return nullcontext() if dtype == torch.float32 else torch.autocast("cpu", dtype)


def make_flop_counter(seen: float) -> FlopCounterMode:
    """Return PyTorch's counter of operations, with formulas for the CPU's attention.

    The forward pass of attention has two matrix products. The backward pass has two products for each of
    them, and one more because it computes the scores again.
    seen: average number of tokens that each token attends to.
    """

    def count_forward(query: Any, *_: Any, **__: Any) -> int:
        return int(2 * 2 * seen * math.prod(query))

    def count_backward(gradient: Any, query: Any, *_: Any, **__: Any) -> int:
        return int(5 * 2 * seen * math.prod(query))

    formulas = {
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: count_forward,
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: count_backward,
        torch.ops.bertdata.flat_attention: count_forward,
        torch.ops.bertdata.flat_attention_backward: count_backward,
        torch.ops.bertdata.fused_attention: count_forward,
        torch.ops.bertdata.fused_attention_backward: count_backward,
    }
    return FlopCounterMode(display=False, custom_mapping=formulas)


@register_flop_formula(torch.ops.bertdata.flat_attention, get_raw=True)
def count_flops(query: Tensor, key: Tensor, value: Tensor, ends: Tensor, *others: Any, **_: Any) -> int:
    """Return the floating-point operations of attention's forward pass: two matrix products per sequence and
    head.
    """
    return 2 * _count_product_flops(query, ends, _find_reach(others))


@register_flop_formula(torch.ops.bertdata.flat_attention_backward, get_raw=True)
def count_backward_flops(gradient: Tensor, query: Tensor, *inputs: Any, **_: Any) -> int:
    """Return the floating-point operations of attention's backward pass.

    It has five matrix products. One of them computes the scores again.
    """
    return 5 * _count_product_flops(query, inputs[2], _find_reach(inputs))


register_flop_formula(torch.ops.bertdata.fused_attention, get_raw=True)(count_flops)
register_flop_formula(torch.ops.bertdata.fused_attention_backward, get_raw=True)(count_backward_flops)


def _find_reach(arguments: Sequence[Any]) -> int:
    """Return the reach of an attention operation: the number of tokens that a token sees on each side.

    The reach is the operation's last argument. An operation without this argument sees the whole sequence,
    and the result is EVERY.
    """
    return arguments[-1] if isinstance(arguments[-1], int) else EVERY


def _count_product_flops(query: Tensor, ends: Tensor, reach: int) -> int:
    """Return the floating-point operations of one matrix product of attention, over all sequences and
    heads.
    """
    _, heads, size = query.shape
    whole = reach == EVERY
    pairs = (
        sum(length**2 for length in ends.diff().tolist())
        if whole
        else count_scored_pairs(ends.tolist(), reach)
    )
    return int(2 * pairs * size * heads)
