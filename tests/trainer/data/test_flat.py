"""Flat batches hold what the padded rows hold, without the padding."""

import threading
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bertdata.examples.bert.batch import BertBatch
from bertdata.records import ShardLayout
from tests.support.example_batches import example_batch
from tests.support.padded_examples import PaddedExamples, PaddedForm, pad_examples
from trainer.data.batches import FlatBatch, Form, make_flat_batch
from trainer.data.budgets import Budgets, ExampleSizes, find_budgets
from trainer.data.evaluation import load_evaluation_batches
from trainer.data.examples import CompactExamples, GatheredExamples, Rows, gather_examples
from trainer.data.forms import make_form
from trainer.data.generated import generate_data
from trainer.data.loader import Loader

S, P = 12, 3
LAYOUT = ShardLayout(max_seq_length=S, max_predictions_per_seq=P)
DATA = {
    fill: generate_data(LAYOUT, vocabulary_size=60_000, fill=fill, files=3, examples=9) for fill in (0.5, 1)
}
EXAMPLES = st.lists(st.tuples(st.integers(1, S), st.integers(0, P)), min_size=1, max_size=12)


def gathered(sizes: list[tuple[int, int]]) -> GatheredExamples:
    """Examples with so many tokens and masks each, in rows."""
    held = CompactExamples([example_batch(sizes)], LAYOUT)
    rows = np.arange(len(sizes))
    return gather_examples([(held, rows, rows)], LAYOUT, rows + 1)


def budgets(sizes: list[tuple[int, int]], batch_size: int, token_budget: int | None = None) -> Budgets:
    tokens, masks = map(np.array, zip(*sizes, strict=True))
    return find_budgets(ExampleSizes.of(tokens, masks), LAYOUT, batch_size, token_budget=token_budget)


def examples_of_rows(batch: PaddedExamples) -> Iterator[tuple[list[int], ...]]:
    """(ids, segments, masked positions, labels of the masks, label of the pair) of each example."""
    for i in range(len(batch)):
        used, masks = int(batch.attention_mask[i].sum()), int(batch.masked_lm_weights[i].sum())
        if not used:
            continue  # missing
        yield (
            batch.input_ids[i, :used].tolist(),
            batch.token_type_ids[i, :used].tolist(),
            batch.masked_lm_positions[i, :masks].tolist(),
            batch.masked_lm_ids[i, :masks].tolist(),
            [int(batch.next_sentence_labels[i])],
        )


def examples_of_flat(batch: FlatBatch) -> Iterator[tuple[list[int], ...]]:
    """The same of a flat batch, without missing examples."""
    masked_rows = batch.masked_lm_rows[batch.masked_lm_weights > 0]
    masked_ids = batch.masked_lm_ids[batch.masked_lm_weights > 0]
    for i in range(int((batch.next_sentence_labels >= 0).sum())):
        start, end = batch.ends[i : i + 2].tolist()
        own = (masked_rows >= start) & (masked_rows < end)
        yield (
            batch.input_ids[start:end].tolist(),
            batch.token_type_ids[start:end].tolist(),
            (masked_rows[own] - start).tolist(),
            masked_ids[own].tolist(),
            [int(batch.next_sentence_labels[i])],
        )


@given(sizes=EXAMPLES, missing=st.integers(0, 3), token_budget=st.none() | st.integers(1, 3 * S))
def test_flat_batches_equal_padded_rows_example_by_example(sizes, missing, token_budget):
    found = make_flat_batch(gathered(sizes), budgets(sizes, len(sizes) + missing, token_budget))
    assert list(examples_of_flat(found)) == list(examples_of_rows(pad_examples(gathered(sizes), len(sizes))))
    assert found.tokens == sum(tokens for tokens, _ in sizes)


@given(sizes=EXAMPLES, missing=st.integers(0, 3), token_budget=st.none() | st.integers(1, 3 * S))
def test_every_row_belongs_to_a_sequence_and_unused_slots_are_zero(sizes, missing, token_budget):
    batch = make_flat_batch(gathered(sizes), budgets(sizes, len(sizes) + missing, token_budget))
    lengths = np.diff(batch.ends.numpy())
    assert batch.ends[0] == 0
    assert batch.ends[-1] == len(batch.input_ids)
    assert lengths.min() >= 0
    assert lengths.max() <= batch.longest == S
    positions = [position for length in lengths for position in range(length)]
    assert batch.position_ids.tolist() == positions
    assert not batch.input_ids[batch.tokens :].any()
    assert not batch.token_type_ids[batch.tokens :].any()
    unused = batch.masked_lm_weights == 0
    assert not batch.masked_lm_rows[unused].any()
    assert not batch.masked_lm_ids[unused].any()
    assert batch.first_rows.tolist() == [*batch.ends[: len(sizes)].tolist(), *[0] * missing]
    assert batch.next_sentence_labels.tolist()[len(sizes) :] == [-1] * missing


@given(sizes=EXAMPLES, missing=st.integers(0, 3), token_budget=st.none() | st.integers(1, 3 * S))
def test_shapes_depend_on_the_budget_alone(sizes, missing, token_budget):
    known = budgets(sizes, len(sizes) + missing, token_budget)
    shapes = {(one.tokens, one.masks, one.sequences) for one in known.budgets}
    for count in range(len(sizes) + 1):
        batch = make_flat_batch(
            gathered(sizes[:count]) if count else gather_examples([], LAYOUT, np.arange(0)), known
        )
        assert (len(batch.input_ids), len(batch.masked_lm_ids), len(batch.ends) - 1) in shapes
        assert len(batch) == len(batch.next_sentence_labels) == len(sizes) + missing


@settings(max_examples=20)
@given(sizes=EXAMPLES, size=st.integers(1, 5))
def test_both_forms_cut_the_same_batches(sizes, size):
    rows = PaddedForm().batches(gathered(sizes), size, lambda batch: batch)
    flat = Form(budgets(sizes, size)).batches(gathered(sizes), size, lambda batch: batch)
    for ours, theirs in zip(flat, rows, strict=True):
        assert list(examples_of_flat(ours)) == list(examples_of_rows(theirs))


def test_tensors_are_int32_but_for_the_weights():
    kinds: dict[str, torch.dtype] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        kinds[str(len(kinds))] = tensor.dtype
        return tensor

    make_flat_batch(gathered([(5, 2)]), budgets([(5, 2)], 1)).map(note)
    assert sorted(map(str, kinds.values())) == ["torch.float32"] + 8 * ["torch.int32"]


@pytest.mark.parametrize(
    ("token_budget", "said"),
    [
        (1024, "flat, padded to 64 tokens"),
        (32, "flat, padded to 32 or 64 tokens"),
        (24, "flat, padded to 24, 48 or 64 tokens"),
        (4, "flat, padded to one of 16 sizes from 4 to 64 tokens"),
    ],
)
def test_the_log_names_the_budgets_where_they_are_few(token_budget, said):
    layout = ShardLayout(max_seq_length=16, max_predictions_per_seq=2)
    sizes = ExampleSizes.of(np.array([5, 16]), np.array([1, 2]))
    assert Form(find_budgets(sizes, layout, 4, token_budget=token_budget)).describe() == said


def test_budgets_of_another_batch_size_are_refused():
    form = Form(budgets([(5, 2)], 4))
    with pytest.raises(AssertionError, match="budgets are for 4, not 2"):
        next(form.batches(gathered([(5, 2)]), 2, lambda batch: batch))


def test_the_support_module_makes_valid_examples():
    batch = example_batch([(5, 2), (12, 0)])
    assert isinstance(batch, BertBatch)
    assert batch.ends.tolist() == [5, 17]
    assert batch.mask_ends.tolist() == [2, 2]


@pytest.mark.parametrize("fill", DATA)
@pytest.mark.parametrize(("workers", "accumulation"), [(1, 1), (1, 3), (3, 2)])
def test_updates_hold_the_same_examples_in_both_forms(fill, workers, accumulation):
    data = DATA[fill]
    flat_form = make_form(Rows(data), batch_size=2, micro_batches=workers * accumulation)
    for rank in range(workers):
        share = {"workers": workers, "rank": rank, "accumulation": accumulation, "batch_size": 2}
        flat = Loader(Rows(data), form=flat_form, open_files=2, **share)
        rows = Loader(Rows(data), form=PaddedForm(), open_files=2, **share)
        for _ in range(12):  # across epochs
            ours, theirs = next(flat), next(rows)
            assert ours.position == theirs.position
            for one, other in zip(ours.batches, theirs.batches, strict=True):
                assert list(examples_of_flat(one)) == list(examples_of_rows(other))
        flat.close()
        rows.close()


@pytest.mark.parametrize("fill", DATA)
@pytest.mark.parametrize(("workers", "limit"), [(1, None), (2, 12), (2, 9), (5, 3)])
def test_flat_evaluation_takes_every_example_once_in_as_many_batches_on_every_worker(fill, workers, limit):
    data = DATA[fill]
    form = make_form(Rows(data), batch_size=4)
    whole = load_evaluation_batches(data, form=PaddedForm(), batch_size=4, limit=limit)
    expected = [example for batch in whole for example in examples_of_rows(batch)]
    found, counts = [], set()
    for rank in range(workers):
        batches = list(
            load_evaluation_batches(data, form=form, batch_size=4, workers=workers, rank=rank, limit=limit)
        )
        counts.add(len(batches))
        assert {len(batch) for batch in batches} == {4}
        found += [example for batch in batches for example in examples_of_flat(batch)]
    assert found == expected
    assert len(counts) == 1


def test_flat_batches_are_prepared_in_the_thread():
    threads = []

    def prepare(batch: FlatBatch) -> FlatBatch:
        threads.append(threading.current_thread())
        return batch.map(torch.Tensor.clone)

    form = make_form(Rows(DATA[1]), batch_size=2)
    loader = Loader(Rows(DATA[1]), form=form, batch_size=2, accumulation=3, prepare=prepare)
    next(loader)
    loader.close()
    assert len(threads) >= 3
    assert threading.current_thread() not in threads
