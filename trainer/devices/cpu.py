"""The CPU as a device. Its attention computes one sequence after the other and needs no padding.

Sequences of a batch could also be padded to one length and computed together. The loop over sequences is
faster, because it computes no scores of padding. For PyTorch's compiler the whole loop is one operation,
whose inputs include the ends of the sequences. So one compiled graph serves every batch, although the lengths
of the sequences differ.
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
"""The dropout rate is rounded to a multiple of 1/65536, because each value is dropped or kept by comparing 16
random bits with a threshold. With 16 bits for a value, one 64-bit random number serves four values.
"""

_CHUNK = 1 << 20
"""Largest number of attention scores computed at once, so that they stay in the processor's cache.

Heads are computed together up to this limit, but at least one head at a time.
"""

Block = tuple[slice, slice]
"""A block of a (rows, heads, head size) tensor: a slice of its rows and a slice of its heads."""


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

    The arguments are explained at ``trainer.data.batches.FlatAttention``.

    With dropout, each call draws one seed from torch's generator. The dropout mask is computed from the seed,
    so the backward pass can compute it again.
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
    """The CPU."""

    name = "cpu"
    process_group = "gloo"
    bucket_mb = 25
    fused_step = True
    attention = staticmethod(cpu_attention)

    def find_reason_against_fp8(self) -> str:
        if self.config.update.fp8_emulation:
            return ""
        return (
            "device 'cpu' has no FP8: give --precision bf16, or --fp8-emulation to see what the same "
            "roundings do to a training"
        )

    def seed(self, seed: int) -> None:
        # seed only the CPU: torch.manual_seed would take 50 times as long, because it seeds every
        # accelerator's generator
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
    """Return softmax(scale * query @ key.T) @ value for each sequence and head, with dropout.

    ends: 0, then for each sequence the row after its last token.
    seed: 0-dim tensor from which the dropout mask is computed.
    reach: number of tokens that a token sees on each side. EVERY: the whole sequence.
    """
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
    """Return the gradients of query, key and value. The softmax and dropout of the forward pass are
    recomputed.
    """
    # With a limited reach, neighbouring blocks see some of the same rows, so the gradients of a row are
    # summed.
    make, give = (torch.empty, Tensor.copy_) if reach == EVERY else (torch.zeros, Tensor.add_)
    outputs = [make(query.shape, dtype=query.dtype) for _ in range(3)]
    draw = _make_factor_drawer(seed, dropout, query.dtype)
    with torch.autocast("cpu", enabled=False):
        for part, seen, mask in _iterate_chunks(query, ends, reach):
            g, q, of_query = (_move_heads_first(one, part) for one in (gradient, query, outputs[0]))
            k, v, of_key, of_value = (_move_heads_first(one, seen) for one in (key, value, *outputs[1:]))
            # weights: softmax of the scores. kept: dropout factors. The gradient goes back through the
            # dropout first, then through the softmax.
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
    """Return an uninitialised output of the right shape, which compilers use to trace the operation."""
    return torch.empty_like(query, memory_format=torch.contiguous_format)


@attend_backward.register_fake
def _make_empty_gradients(gradient: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    return _make_empty_output(gradient), _make_empty_output(gradient), _make_empty_output(gradient)


def _keep_inputs(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """Store the inputs of the attention in ``ctx``, where the backward pass reads them."""
    *tensors, ctx.dropout, ctx.scale, ctx.reach = inputs
    ctx.save_for_backward(*tensors)


def _compute_gradients(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    gradients = attend_backward(gradient, *ctx.saved_tensors, ctx.dropout, ctx.scale, ctx.reach)
    return *gradients, None, None, None, None, None


attend.register_autograd(_compute_gradients, setup_context=_keep_inputs)


def _make_factor_drawer(seed: Tensor, dropout: float, dtype: torch.dtype) -> Callable[[torch.Size], Tensor]:
    """Return a function that draws dropout factors for a tensor of a given shape.

    A factor is 0 for a dropped value and 1 / (1 - dropout) for a kept value. The same seed gives the same
    factors, so the backward pass draws those of the forward pass again.
    """
    generator = torch.Generator().manual_seed(seed.tolist()[0])
    dropped = round(dropout * _LEVELS)

    def draw_factors(shape: torch.Size) -> Tensor:
        count = shape.numel()
        bits = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(2**63), None, generator=generator)
        values = bits.view(torch.int16)[:count].view(shape)
        kept = torch.empty(shape, dtype=dtype)
        return torch.ge(values, dropped - _LEVELS // 2, out=kept).mul_(_LEVELS / (_LEVELS - dropped))

    return draw_factors


def _iterate_chunks(query: Tensor, ends: Tensor, reach: int) -> Iterator[tuple[Block, Block, Tensor | None]]:
    """Yield the blocks in which the attention is computed, one after the other.

    Each item is (block whose attention is computed, block of keys and values that it attends to, mask of the
    scores). The mask is None if every row of the first block sees every row of the second.
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
    """Return a view of one block of a (rows, heads, head size) tensor, with shape (heads, rows, head
    size).
    """
    return tensor[part].transpose(0, 1)


def _compute_softmax(query: Tensor, key: Tensor, scale: float, mask: Tensor | None) -> Tensor:
    """Return the softmax of the attention scores of one block.

    mask: numbers to add to the scores, minus infinity where a row does not see another row. None: every row
    sees every row.
    """
    scores = torch.bmm(query, key.mT).mul_(scale)
    if mask is not None:
        scores += mask
    return torch._softmax(scores, -1, False, out=scores)
