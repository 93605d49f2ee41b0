"""Token budgets: little padding, few shapes."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.errors import SettingsError
from bertdata.examples.columns import compute_lengths
from bertdata.records import ShardLayout
from trainer.data.batches import FlatBatch, Form
from trainer.data.budgets import Budgets, ExampleSizes, _measure_padding, find_budgets, sample_sizes
from trainer.data.examples import Rows
from trainer.data.generated import generate_data
from trainer.data.loader import Loader

PHASES = {
    "128/20": ShardLayout(max_seq_length=128, max_predictions_per_seq=20),
    "512/80": ShardLayout(max_seq_length=512, max_predictions_per_seq=80),
}
UPDATES = 100
FEW = 10


def sizes_of(layout: ShardLayout, fill: float) -> ExampleSizes:
    return sample_sizes(generate_data(layout, vocabulary_size=100, fill=fill, files=2))


def flat_batches(layout: ShardLayout, fill: float, budgets: Budgets) -> list[FlatBatch]:
    """The micro-batches of 100 updates of random examples, others than the budgets were chosen for."""
    data = generate_data(layout, vocabulary_size=100, fill=fill, files=4, seed=5)
    loader = Loader(Rows(data), form=Form(budgets), batch_size=budgets.batch_size)
    try:
        return [next(loader).batches[0] for _ in range(UPDATES)]
    finally:
        loader.close()


@pytest.mark.parametrize("batch_size", [8, 16, 32, 64])
@pytest.mark.parametrize("fill", [0.5, 0.9])
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.thorough_after_first
def test_padding_is_little_and_shapes_are_few(phase, fill, batch_size):
    layout = PHASES[phase]
    budgets = find_budgets(sizes_of(layout, fill), layout, batch_size)
    batches = flat_batches(layout, fill, budgets)
    tokens = sum(batch.tokens for batch in batches)
    assert tokens / UPDATES / batch_size / layout.max_seq_length == pytest.approx(fill, rel=0.05)
    padded = sum(len(batch.input_ids) for batch in batches)
    assert padded <= 1.06 * tokens
    shapes = {(len(b.input_ids), len(b.masked_lm_ids), len(b.ends), len(b)) for b in batches}
    assert len(shapes) <= len(budgets.budgets) <= (FEW if batch_size > 8 else 1.5 * FEW)


def test_masked_slots_are_the_expected_number_and_three_deviations():
    """Rounded up to a multiple of 8; at most every mask, which the last size has."""
    examples = ExampleSizes(lengths=np.array([60, 128]), masks_per_token=0.15, deviation=2.0)
    budgets = Budgets([1024, 1536], examples, PHASES["128/20"], batch_size=16).budgets
    # 0.15 * 1024 + 3 * 2 * 4 = 177.6, 0.15 * 1536 + 24 = 254.4, and 16 examples of 20
    assert [(one.tokens, one.masks) for one in budgets] == [
        (1024, 184),
        (1536, 256),
        (2048, 320),
        (2048, 320),
    ]


@pytest.mark.parametrize(("least", "most", "step"), [(3000, 4000, 64), (100, 400, 8), (1300, 200_000, 832)])
def test_candidates_for_sizes_begin_at_the_smallest_total(least, most, step):
    """They are at most 256 steps apart, after the candidate 0."""
    sizes, padding = _measure_padding(np.array([least, (least + most) // 2, most]))
    assert sizes[:3].tolist() == [0, least // step * step, least // step * step + step]
    assert most <= sizes[-1] < most + step
    assert len(sizes) <= 258
    assert padding[0, -1] == 3 * sizes[-1] - least - most - (least + most) // 2


@pytest.mark.parametrize("phase", PHASES)
def test_masked_slots_are_near_those_that_are_used(phase):
    layout = PHASES[phase]
    batches = flat_batches(layout, 0.5, find_budgets(sizes_of(layout, 0.5), layout, 32))
    used = sum(int(batch.masked_lm_weights.sum()) for batch in batches)
    assert sum(len(batch.masked_lm_ids) for batch in batches) <= 1.1 * used


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("fill", [0.5, 0.9])
def test_few_sequences_are_added_for_padding(phase, fill):
    layout = PHASES[phase]
    batches = flat_batches(layout, fill, find_budgets(sizes_of(layout, fill), layout, 32))
    assert max(len(batch.ends) - 1 for batch in batches) <= 1.25 * 32


def test_full_sequences_have_one_budget_without_padding():
    layout = PHASES["128/20"]
    first, last = find_budgets(sizes_of(layout, 1), layout, 16).budgets
    assert (first.tokens, first.masks, first.sequences) == (16 * 128, 16 * 20, 16 + 1)
    assert (last.tokens, last.masks, last.sequences) == (16 * 128, 16 * 20, 2 * 16)


def test_micro_batches_of_equal_shares_need_fewer_budgets():
    layout = PHASES["512/80"]
    sizes = sizes_of(layout, 0.5)
    alone, shared = (find_budgets(sizes, layout, 8, group=group).budgets for group in (1, 16))
    assert len(shared) < len(alone)


@pytest.mark.parametrize("token_budget", [None, 2048])
def test_usual_budgets_are_those_that_batches_take(token_budget):
    layout = PHASES["512/80"]
    budgets = find_budgets(sizes_of(layout, 0.5), layout, 64, token_budget=token_budget)
    largest = max(one.tokens for one in budgets.usual)
    assert largest < 0.75 * 64 * 512 == 0.75 * budgets.budgets[-1].tokens
    assert len(budgets.usual) < len(budgets.budgets) - 1
    sizes = {len(batch.input_ids) for batch in flat_batches(layout, 0.5, budgets)}
    assert sizes <= {one.tokens for one in budgets.usual}


def test_full_sequences_have_one_usual_budget():
    layout = PHASES["128/20"]
    budgets = find_budgets(sizes_of(layout, 1), layout, 16)
    assert budgets.usual == budgets.budgets[:1]


def test_a_given_budget_is_the_step_of_all():
    layout = PHASES["128/20"]
    budgets = find_budgets(sizes_of(layout, 0.5), layout, 8, token_budget=300)
    assert [one.tokens for one in budgets.budgets] == [300, 600, 900, 1024, 1024]
    with pytest.raises(SettingsError, match="token_budget is 0, expected a number of tokens above 0"):
        find_budgets(sizes_of(layout, 0.5), layout, 8, token_budget=0)


@given(
    data=st.lists(st.tuples(st.integers(1, 12), st.integers(0, 3)), min_size=1, max_size=40),
    batch_size=st.integers(1, 6),
    token_budget=st.none() | st.integers(1, 80),
    multiple=st.sampled_from([1, 16]),
    batch=st.lists(st.tuples(st.integers(1, 12), st.integers(0, 3)), max_size=6),
)
def test_every_batch_fits_a_budget_whatever_the_sample_was(data, batch_size, token_budget, multiple, batch):
    layout = ShardLayout(max_seq_length=12, max_predictions_per_seq=3)
    examples = ExampleSizes.of(*map(np.array, zip(*data, strict=True)))
    given = token_budget and token_budget * multiple
    budgets = find_budgets(examples, layout, batch_size, token_budget=given, multiple=multiple)
    assert all(one.tokens % multiple == 0 for one in budgets.budgets)
    assert all(a.tokens <= b.tokens and a.masks <= b.masks for a, b in itertools.pairwise(budgets.budgets))
    batch = batch[:batch_size]
    tokens, masks = (sum(column) for column in zip(*batch, strict=True)) if batch else (0, 0)
    found = budgets.find(tokens, masks, len(batch))
    assert tokens <= found.tokens < batch_size * 12 + multiple
    assert masks <= found.masks <= batch_size * 3
    assert found.tokens - tokens <= (found.sequences - len(batch)) * 12


@pytest.mark.parametrize("fill", [0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("phase", PHASES)
def test_generated_examples_fill_their_rows_as_asked(phase, fill):
    layout = PHASES[phase]
    data = generate_data(layout, vocabulary_size=100, fill=fill, files=1)
    (batch,) = data.batches(data.shards[0])
    tokens = compute_lengths(batch.ends)
    assert tokens.mean() / layout.max_seq_length == pytest.approx(fill, rel=0.03)
    assert (tokens == layout.max_seq_length).mean() >= 0.09
    assert len(np.unique(tokens)) > 40


@pytest.mark.parametrize("fill", [0.1, 1.1])
def test_an_impossible_fill_is_refused(fill):
    with pytest.raises(SettingsError, match=rf"fill is {fill}, expected 0.2 to 1"):
        generate_data(PHASES["128/20"], vocabulary_size=100, fill=fill)


def test_packed_rows_have_a_tight_budget_and_one_that_holds_any_row():
    """A row of three examples seldom has three times the masks, but may have."""
    layout = ShardLayout(max_seq_length=64, max_predictions_per_seq=10, packing="flat", sequences_per_row=3)
    tokens = np.array([64, 63, 64, 62] * 50)
    budgets = find_budgets(ExampleSizes.of(tokens, (0.15 * tokens).round()), layout, 8)
    assert budgets.examples == 24
    usual, last = budgets.find(8 * 63, 8 * 10, 18), budgets.budgets[-1]
    assert usual.masks < 110
    assert usual.sequences >= 24
    assert budgets.find(8 * 63, 8 * 30, 24) == last
    assert (last.tokens, last.masks, last.sequences) == (512, 240, 32)
