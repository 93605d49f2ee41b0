"""Counting of operations with tensors in host memory (real or fake), to forecast the work of another device.

This module also registers, with PyTorch's counter, the operations of attention on the host.
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
"""The host's attention for sequences without padding."""


def make_host_autocast(dtype: torch.dtype) -> AbstractContextManager[object]:
    """Return the context manager of a forward pass with matrix products of this type."""
    return nullcontext() if dtype == torch.float32 else torch.autocast("cpu", dtype)


def make_flop_counter(seen: float) -> FlopCounterMode:
    """Return PyTorch's counter with formulas for the host's attention.

    A backward pass has two products for each of the two in the forward pass, and computes the scores again.
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
    """Return the operations of attention: two matrix products per sequence and head."""
    return 2 * _count_product_flops(query, ends, _find_reach(others))


@register_flop_formula(torch.ops.bertdata.flat_attention_backward, get_raw=True)
def count_backward_flops(gradient: Tensor, query: Tensor, *inputs: Any, **_: Any) -> int:
    """Return the operations of the backward pass: five products, of which one computes the scores again."""
    return 5 * _count_product_flops(query, inputs[2], _find_reach(inputs))


register_flop_formula(torch.ops.bertdata.fused_attention, get_raw=True)(count_flops)
register_flop_formula(torch.ops.bertdata.fused_attention_backward, get_raw=True)(count_backward_flops)


def _find_reach(arguments: Sequence[Any]) -> int:
    """Return the reach (tokens that a token sees on each side), which is the last argument of an attention
    operation, or EVERY (the whole sequence) for operations without this argument.
    """
    return arguments[-1] if isinstance(arguments[-1], int) else EVERY


def _count_product_flops(query: Tensor, ends: Tensor, reach: int) -> int:
    """Return the operations of one matrix product over all sequences and heads."""
    _, heads, size = query.shape
    whole = reach == EVERY
    pairs = (
        sum(length**2 for length in ends.diff().tolist())
        if whole
        else count_scored_pairs(ends.tolist(), reach)
    )
    return int(2 * pairs * size * heads)
