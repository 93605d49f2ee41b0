"""The host's processor, with attention that goes through the sequences one after the other, without padding.

The loop over sequences is faster than padding groups of sequences to one length, because it computes no
scores of padding. PyTorch's compiler sees the whole loop as one operation. So a compiled graph can be used
for every batch, although the sequences have other lengths: their ends are an input of the operation, and no
shape changes.
"""

import itertools
import platform
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from trainer.devices.device import Device
from trainer.devices.window_blocks import iterate_masked_blocks
from trainer.model.layers import EVERY

_LEVELS = 1 << 16
"""Number of levels to which a dropout rate is rounded: 16 random bits are compared with a threshold. One
64-bit number of the random generator serves four values.
"""

_CHUNK = 1 << 20
"""Most scores computed at once, so that they stay in the processor's cache.

A sequence whose single head has more scores is computed a head at a time.
"""

Block = tuple[slice, slice]
"""A slice of the rows and a slice of the heads."""


def cpu_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    ends: Tensor,
    longest: int,
    dropout: float,
    scale: float | None = None,
    reach: int | None = None,
) -> Tensor:
    """Return the attention within each sequence, computed one sequence after the other.

    The arguments are those of ``trainer.data.batches.FlatAttention``.

    With dropout, each call draws one seed from torch's generator, and the dropout mask follows from the seed.
    """
    scale, reach = query.shape[-1] ** -0.5 if scale is None else scale, reach or EVERY
    if dropout:
        seed = torch.randint(1 << 62, (1,))
        dropped: Tensor = attend(query, key, value, ends, seed, dropout, scale, reach)
        return dropped
    from trainer.devices.cpu_fused_attention import attend_fused

    attended: Tensor = attend_fused(query, key, value, ends, scale, reach)[0]
    return attended


class Cpu(Device):
    """The host's processor."""

    name = "cpu"
    process_group = "gloo"
    bucket_mb = 25
    fused_step = True
    attention = staticmethod(cpu_attention)

    def seed(self, seed: int) -> None:
        # torch.manual_seed would take 50 times as long, because it seeds the generators of all accelerators
        torch.default_generator.manual_seed(seed)

    def describe(self) -> str:
        compiled = ", compiled" if self.compiles else ""
        threads = torch.get_num_threads()
        return f"cpu: {platform.machine()}, {threads} thread{'s' * (threads != 1)}{compiled}"


@torch.library.custom_op("bertdata::flat_attention", mutates_args=(), device_types="cpu")
def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    ends: Tensor,
    seed: Tensor,
    dropout: float,
    scale: float,
    reach: int = EVERY,
) -> Tensor:
    """Return softmax(scale * query @ key.T) @ value for each sequence and head, with dropout."""
    output = torch.empty(query.shape, dtype=query.dtype)
    draw = _make_factor_drawer(seed, dropout, query.dtype)
    with torch.autocast("cpu", enabled=False):
        for part, seen, mask in _iterate_chunks(query, ends, reach):
            q, out = (_move_heads_first(one, part) for one in (query, output))
            k, v = (_move_heads_first(one, seen) for one in (key, value))
            weights = _compute_softmax(q, k, scale, mask)
            weights *= draw(weights.shape)
            out.copy_(torch.bmm(weights, v))
    return output


@torch.library.custom_op("bertdata::flat_attention_backward", mutates_args=(), device_types="cpu")
def attend_backward(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    ends: Tensor,
    seed: Tensor,
    dropout: float,
    scale: float,
    reach: int = EVERY,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of query, key and value. Softmax and dropout are computed again from the seed."""
    # With a limited reach several blocks see the same row, so their gradients are added up.
    make, give = (torch.empty, Tensor.copy_) if reach == EVERY else (torch.zeros, Tensor.add_)
    outputs = [make(query.shape, dtype=query.dtype) for _ in range(3)]
    draw = _make_factor_drawer(seed, dropout, query.dtype)
    with torch.autocast("cpu", enabled=False):
        for part, seen, mask in _iterate_chunks(query, ends, reach):
            g, q, of_query = (_move_heads_first(one, part) for one in (gradient, query, outputs[0]))
            k, v, of_key, of_value = (_move_heads_first(one, seen) for one in (key, value, *outputs[1:]))
            # weights = softmax, kept = dropout factors. First the gradient of the dropped weights, then of
            # the softmax.
            weights = _compute_softmax(q, k, scale, mask)
            of_weights = torch.bmm(g, v.mT)
            kept = draw(weights.shape)
            of_weights *= kept
            kept *= weights
            give(of_value, torch.bmm(kept.mT, g))
            of_scores = torch._softmax_backward_data(of_weights, weights, -1, weights.dtype)
            of_query.copy_(torch.bmm(of_scores, k).mul_(scale))
            give(of_key, torch.bmm(of_scores.mT, q).mul_(scale))
    return outputs[0], outputs[1], outputs[2]


@attend.register_fake
def _make_empty_output(query: Tensor, *_: Any) -> Tensor:
    """Return an output of the right shape without values, by which compilers trace the operation."""
    return torch.empty_like(query, memory_format=torch.contiguous_format)


@attend_backward.register_fake
def _(gradient: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    return _make_empty_output(gradient), _make_empty_output(gradient), _make_empty_output(gradient)


def _keep_inputs(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """Store the inputs of the attention in ``ctx`` for the backward pass."""
    *tensors, ctx.dropout, ctx.scale, ctx.reach = inputs
    ctx.save_for_backward(*tensors)


def _backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    gradients = attend_backward(gradient, *ctx.saved_tensors, ctx.dropout, ctx.scale, ctx.reach)
    return *gradients, None, None, None, None, None


attend.register_autograd(_backward, setup_context=_keep_inputs)


def _make_factor_drawer(seed: Tensor, dropout: float, dtype: torch.dtype) -> Callable[[torch.Size], Tensor]:
    """Return a function that draws dropout factors for a tensor of any shape: 0, or 1 / (share of kept
    values).

    The same seed yields the same factors, in the backward pass too.
    """
    generator = torch.Generator().manual_seed(seed.tolist()[0])
    dropped = round(dropout * _LEVELS)

    def draw(shape: torch.Size) -> Tensor:
        count = shape.numel()
        bits = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(2**63), None, generator=generator)
        values = bits.view(torch.int16)[:count].view(shape)
        kept = torch.empty(shape, dtype=dtype)
        return torch.ge(values, dropped - _LEVELS // 2, out=kept).mul_(_LEVELS / (_LEVELS - dropped))

    return draw


def _iterate_chunks(query: Tensor, ends: Tensor, reach: int) -> Iterator[tuple[Block, Block, Tensor | None]]:
    """Yield the parts of the attention that are computed one after the other. A part is (rows and heads
    computed together, rows that they attend to, mask of the scores or None).
    """
    heads, bounds = query.shape[1], ends.tolist()
    pairs = itertools.starmap(slice, itertools.pairwise(bounds))
    found = ((rows, rows, None) for rows in pairs if rows.start < rows.stop)
    for rows, seen, mask in found if reach == EVERY else iterate_masked_blocks(bounds, reach):
        step = max(1, _CHUNK // ((rows.stop - rows.start) * (seen.stop - seen.start)))
        for head in range(0, heads, step):
            some = slice(head, head + step)
            yield (rows, some), (seen, some), mask


def _move_heads_first(tensor: Tensor, part: Block) -> Tensor:
    """Return a view of shape (heads, rows, head size) of a part of a tensor (rows, heads, head size)."""
    return tensor[part].transpose(0, 1)


def _compute_softmax(query: Tensor, key: Tensor, scale: float, mask: Tensor | None) -> Tensor:
    """Return the softmax of the scores of some heads and rows.

    mask: True where a row sees another row. None: every row sees all.
    """
    scores = torch.bmm(query, key.mT).mul_(scale)
    if mask is not None:
        scores += mask
    return torch._softmax(scores, -1, False, out=scores)
