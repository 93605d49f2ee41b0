"""Attention within a window, on processors and on any device, against float64 written out here."""

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from trainer.devices import counting  # noqa: F401 - the formulas of the counted operations
from trainer.devices.cpu import attend, cpu_attention
from trainer.devices.cuda_attention import efficient_attention, flash_attention
from trainer.devices.window_blocks import count_scored_pairs
from trainer.model.layers import EVERY
from trainer.model.padded_attention import padded_attention

HEADS, SIZE = 2, 4


def products(query, key, value, ends, longest, dropout, scale=None, reach=None):
    """The processor's attention for dropout, with none."""
    seed = torch.zeros(1, dtype=torch.int64)
    return attend(query, key, value, ends, seed, dropout, scale or SIZE**-0.5, reach or EVERY)


ATTENTIONS = (cpu_attention, products, padded_attention)


def ends_of(lengths: list[int]) -> Tensor:
    return torch.tensor([0, *lengths]).cumsum(0).int()


def make_inputs(tokens: int) -> list[Tensor]:
    """Query, key and value, views of one tensor as the model makes them."""
    torch.manual_seed(3)
    return [part.detach().requires_grad_() for part in torch.randn(tokens, 3, HEADS, SIZE).unbind(1)]


def plain(inputs: list[Tensor], lengths: list[int], reach: int) -> Tensor:
    """Token by token in float64."""
    query, key, value = (one.double() for one in inputs)
    outputs, start = [torch.zeros(0, HEADS, SIZE).double()], 0
    for length in lengths:
        for place in range(start, start + length):
            low, high = max(start, place - reach), min(start + length, place + reach + 1)
            scores = torch.einsum("hd,khd->hk", query[place], key[low:high]) / math.sqrt(SIZE)
            weights = torch.softmax(scores, 1)
            outputs.append(torch.einsum("hk,khd->hd", weights, value[low:high])[None])
        start += length
    return torch.cat(outputs)


def compare(attention: Callable[..., Tensor], lengths: list[int], reach: int) -> None:
    """Assert that output and gradients are those of ``plain``."""
    tokens = sum(lengths)
    found, wanted = make_inputs(tokens), make_inputs(tokens)
    output = attention(*found, ends_of(lengths), max(lengths), 0.0, None, reach)
    expected = plain(wanted, lengths, reach)
    torch.testing.assert_close(output.double(), expected, rtol=0, atol=1e-6)
    direction = torch.randn(output.shape)
    output.backward(direction)
    expected.backward(direction.double())
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=0, atol=1e-5)


@pytest.mark.parametrize("attention", ATTENTIONS)
@settings(max_examples=25, deadline=None)
@given(lengths=st.lists(st.integers(0, 90), min_size=1, max_size=4).filter(any), reach=st.integers(1, 45))
@pytest.mark.thorough_after_first
def test_windowed_attention_and_its_gradients_equal_a_plain_twin(attention, lengths, reach):
    compare(attention, lengths, reach)


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("lengths", [[1], [64, 65, 66], [129, 3], [200]])
def test_lengths_around_the_window_and_the_blocks_equal_the_twin(attention, lengths):
    compare(attention, lengths, 64)


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_a_window_as_long_as_the_sequences_is_attention_to_all(attention):
    inputs, ends = make_inputs(30), ends_of([7, 23])
    whole = attention(*inputs, ends, 23, 0.0)
    torch.testing.assert_close(attention(*inputs, ends, 23, 0.0, None, 22), whole)


def test_dropout_in_the_backward_pass_is_that_of_the_forward_pass():
    """The output is linear in the values: its sum's gradient, times the values, is the sum."""
    query, key, value = make_inputs(150)
    torch.manual_seed(1)
    output = cpu_attention(query, key, value, ends_of([100, 50]), 100, 0.4, None, 20)
    output.sum().backward()
    torch.testing.assert_close((value.grad * value).sum(), output.sum())
    without = cpu_attention(query, key, value, ends_of([100, 50]), 100, 0.0, None, 20)
    assert not torch.allclose(output, without, atol=0.1)


@pytest.mark.parametrize("length", [8192, 16384])
def test_work_grows_with_the_window_not_with_the_square(length):
    assert count_scored_pairs([0, length], 64) <= 1.5 * length * 129


@pytest.mark.parametrize(("name", "attention"), [("fused", cpu_attention), ("flat", products)])
def test_the_counted_operations_are_those_of_the_blocks(name, attention):
    inputs, ends = make_inputs(300), ends_of([260, 40])
    with FlopCounterMode(display=False) as counter:
        attention(*inputs, ends, 260, 0.0, None, 16).sum().backward()
    pairs = count_scored_pairs(ends.tolist(), 16)
    counts = counter.get_flop_counts()["Global"]
    assert counts[getattr(torch.ops.bertdata, f"{name}_attention")] == 2 * 2 * pairs * SIZE * HEADS
    assert counts[getattr(torch.ops.bertdata, f"{name}_attention_backward")] == 5 * 2 * pairs * SIZE * HEADS


def test_flash_attention_is_given_the_reach_on_both_sides(monkeypatch):
    asked = {}

    def stand_in(query, *_, **options):
        asked.update(options)
        return query, None, None, None, None

    monkeypatch.setattr(torch.ops.aten, "_flash_attention_forward", stand_in)
    flash_attention(*make_inputs(12), ends_of([12]), 12, 0.0, None, 5)
    assert (asked["window_size_left"], asked["window_size_right"]) == (5, 5)
    asked.clear()
    flash_attention(*make_inputs(12), ends_of([12]), 12, 0.0)
    assert "window_size_left" not in asked


def test_flash_attention_has_arguments_for_a_window():
    """On the meta device, where the operation checks its arguments and computes nothing."""
    query, key, value = (part.detach().half().to("meta") for part in make_inputs(16))
    parts = [torch.nn.functional.pad(part, (0, 4)) for part in (query, key, value)]
    assert flash_attention(*parts, ends_of([16]).to("meta"), 16, 0.0, None, 3).shape == parts[0].shape


def test_efficient_attention_with_a_window_equals_the_twin():
    compare(efficient_attention, [40, 9], 6)
