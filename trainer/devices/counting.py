"""Counting of operations on the host's tensors, real or fake, in place of a device's.

With this module PyTorch's counters know the operations of the host's attention.
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
from trainer.devices.window_blocks import scored_pairs
from trainer.model.layers import EVERY

HOST = torch.device("cpu")
host_attention = cpu_attention
"""Attention of the host to sequences without padding."""


def host_autocast(dtype: torch.dtype) -> AbstractContextManager[object]:
    """The context of a forward pass with products of that type."""
    return nullcontext() if dtype == torch.float32 else torch.autocast("cpu", dtype)


def flop_counter(seen: float) -> FlopCounterMode:
    """PyTorch's counter, with formulas for the host's attention of each token to so many, on average.

    A backward pass has two products for each of the forward pass, and computes the scores again.
    """

    def forward(query: Any, *_: Any, **__: Any) -> int:
        return int(2 * 2 * seen * math.prod(query))

    def backward(gradient: Any, query: Any, *_: Any, **__: Any) -> int:
        return int(5 * 2 * seen * math.prod(query))

    formulas = {
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: forward,
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: backward,
        torch.ops.bertdata.flat_attention: forward,
        torch.ops.bertdata.flat_attention_backward: backward,
        torch.ops.bertdata.fused_attention: forward,
        torch.ops.bertdata.fused_attention_backward: backward,
    }
    return FlopCounterMode(display=False, custom_mapping=formulas)


@register_flop_formula(torch.ops.bertdata.flat_attention, get_raw=True)
def count_flops(query: Tensor, key: Tensor, value: Tensor, ends: Tensor, *others: Any, **_: Any) -> int:
    """Two products of (rows, head size) with (head size, seen rows) or the like for each block and head."""
    return 2 * _product_flops(query, ends, _reach(others))


@register_flop_formula(torch.ops.bertdata.flat_attention_backward, get_raw=True)
def count_backward_flops(gradient: Tensor, query: Tensor, *inputs: Any, **_: Any) -> int:
    """Five products, of which one computes the scores again."""
    return 5 * _product_flops(query, inputs[2], _reach(inputs))


register_flop_formula(torch.ops.bertdata.fused_attention, get_raw=True)(count_flops)
register_flop_formula(torch.ops.bertdata.fused_attention_backward, get_raw=True)(count_backward_flops)


def _reach(arguments: Sequence[Any]) -> int:
    """The last argument of each of these operations, or EVERY where only the scale stands there."""
    return arguments[-1] if isinstance(arguments[-1], int) else EVERY


def _product_flops(query: Tensor, ends: Tensor, reach: int) -> int:
    _, heads, size = query.shape
    whole = reach == EVERY
    pairs = sum(length**2 for length in ends.diff().tolist()) if whole else scored_pairs(ends.tolist(), reach)
    return int(2 * pairs * size * heads)
