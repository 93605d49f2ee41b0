"""Attention without padding on processors, against plain attention in float64 written out here."""

import math

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from trainer.devices import counting  # noqa: F401 - the formulas of the counted operations
from trainer.devices.cpu import attend, cpu_attention
from trainer.devices.cpu_fused_attention import attend_fused
from trainer.model.layers import EVERY
from trainer.model.padded_attention import padded_attention

LENGTHS = (5, 0, 17, 32, 1, 0)
HEADS, SIZE, LONGEST = 3, 8, 32


def ends_of(lengths: tuple[int, ...]) -> Tensor:
    return torch.tensor([0, *lengths]).cumsum(0).int()


def make_inputs(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value, views of one tensor as the model makes them."""
    torch.manual_seed(3)
    joined = torch.randn(sum(LENGTHS), 3, HEADS, SIZE).to(dtype)
    query, key, value = (part.detach().requires_grad_() for part in joined.unbind(1))
    return query, key, value


def plain(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    """Sequence by sequence and head by head, in float64."""
    outputs = []
    for q, k, v in zip(*(one.double().split(LENGTHS) for one in (query, key, value)), strict=True):
        for head in range(HEADS):
            weights = torch.softmax(scale * q[:, head] @ k[:, head].T, dim=1)
            outputs.append(weights @ v[:, head])
    rows = [torch.stack(outputs[i : i + HEADS], 1) for i in range(0, len(outputs), HEADS)]
    return torch.cat(rows)


@pytest.mark.parametrize("attention", [cpu_attention, padded_attention])
@pytest.mark.parametrize("scale", [None, 0.7])
def test_attention_and_its_gradients_equal_plain_attention(attention, scale):
    found, wanted = make_inputs(), make_inputs()
    output = attention(*found, ends_of(LENGTHS), LONGEST, 0.0, scale)
    expected = plain(*wanted, scale or 1 / math.sqrt(SIZE))
    torch.testing.assert_close(output.double(), expected, rtol=0, atol=1e-6)
    direction = torch.randn(output.shape)
    output.backward(direction)
    expected.backward(direction.double())
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=0, atol=1e-5)


def test_many_heads_of_a_long_sequence_are_computed_in_parts(monkeypatch):
    given = (*make_inputs(), ends_of(LENGTHS), torch.tensor([7]), 0.0, 0.5)
    whole = attend(*given)
    monkeypatch.setattr("trainer.devices.cpu._CHUNK", 2 * 17**2)
    assert torch.equal(attend(*given), whole)


def test_dropout_follows_torchs_seed():
    inputs, ends = make_inputs(), ends_of(LENGTHS)
    runs = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        runs.append(cpu_attention(*inputs, ends, LONGEST, 0.5))
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])


def test_dropout_zeroes_its_share_and_scales_the_rest():
    """With equal scores and the identity as value, the output is the dropped softmax itself."""
    rows = 256
    zeros, identity = torch.zeros(rows, 1, rows), torch.eye(rows)[:, None]
    torch.manual_seed(0)
    weights = cpu_attention(zeros, zeros, identity, ends_of((rows,)), rows, 0.1) * rows
    kept = weights[weights != 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 1 / 0.9), rtol=1e-4, atol=0)
    assert 1 - len(kept) / rows**2 == pytest.approx(0.1, abs=0.005)  # four standard deviations
    assert weights.mean() == pytest.approx(1, abs=0.006)


def test_the_gradient_is_that_of_the_mask_drawn_before():
    query, key, value = (one.detach().double().requires_grad_() for one in make_inputs())
    seed, ends = torch.tensor([7]), ends_of(LENGTHS)
    assert torch.autograd.gradcheck(
        lambda *parts: attend(*parts, ends, seed, 0.3, 0.5), (query, key, value), fast_mode=True
    )


def test_16_bits_are_near_to_32():
    output = cpu_attention(*make_inputs(torch.bfloat16), ends_of(LENGTHS), LONGEST, 0.0)
    assert output.dtype == torch.bfloat16
    exact = cpu_attention(*make_inputs(), ends_of(LENGTHS), LONGEST, 0.0)
    torch.testing.assert_close(output.float(), exact, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_the_operation_is_sound_for_compilers(dropout):
    results = torch.library.opcheck(
        attend, (*make_inputs(), ends_of(LENGTHS), torch.tensor([7]), dropout, 0.5)
    )
    assert set(results.values()) == {"SUCCESS"}


@pytest.mark.parametrize("reach", [EVERY, 4])
def test_the_fused_operation_is_sound_for_compilers(reach):
    results = torch.library.opcheck(attend_fused, (*make_inputs(), ends_of(LENGTHS), 0.5, reach))
    assert set(results.values()) == {"SUCCESS"}


def test_attention_without_dropout_equals_that_with_a_dropout_of_nothing():
    inputs, ends = make_inputs(), ends_of(LENGTHS)
    found = attend(*inputs, ends, torch.tensor([7]), 0.0, 0.5)
    torch.testing.assert_close(cpu_attention(*inputs, ends, LONGEST, 0.0, 0.5), found)


def test_the_counted_work_is_that_of_the_products_made(monkeypatch):
    made = []
    bmm = torch.bmm

    def counted(left: Tensor, right: Tensor) -> Tensor:
        made.append(2 * left.numel() * right.shape[2])
        return bmm(left, right)

    monkeypatch.setattr(torch, "bmm", counted)
    with FlopCounterMode(display=False) as counter:
        cpu_attention(*make_inputs(), ends_of(LENGTHS), LONGEST, 0.1).sum().backward()
    assert counter.get_total_flops() == sum(made)
    assert sum(made) == 7 * 2 * HEADS * SIZE * sum(length**2 for length in LENGTHS)
