"""Padded rows, tensor by tensor as the support module's twin, with which the core's tests load data."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bertdata.dataset.reader import OpenedDataset
from bertdata.records import ShardLayout
from tests.support.example_batches import example_batch
from tests.support.padded_examples import PaddedExamples, PaddedForm
from trainer.data.evaluation import load_evaluation_batches
from trainer.data.examples import CompactExamples, GatheredExamples, Rows, gather_examples
from trainer.data.forms import make_form
from trainer.data.generated import generate_data
from trainer.data.loader import Loader
from trainer.data.padded_rows import RowForm
from trainer.data.row_batches import RowBatch

LAYOUT = ShardLayout(max_seq_length=12, max_predictions_per_seq=3)
DATA = generate_data(LAYOUT, vocabulary_size=60_000, fill=0.5, files=3, examples=9)


def assert_same(found: RowBatch, twin: PaddedExamples) -> None:
    for field in dataclasses.fields(PaddedExamples):
        ours, theirs = getattr(found, field.name), getattr(twin, field.name)
        assert ours.dtype == theirs.dtype, field.name
        assert torch.equal(ours, theirs), field.name
    assert (found.position_ids, found.next_sentence_positions) == (None, None)


def gathered(sizes: list[tuple[int, int]]) -> GatheredExamples:
    """Examples with so many tokens and masks each, in rows."""
    if not sizes:
        return gather_examples([], LAYOUT, np.arange(0))
    held = CompactExamples([example_batch(sizes)], LAYOUT)
    rows = np.arange(len(sizes))
    return gather_examples([(held, rows, rows)], LAYOUT, rows + 1)


@given(sizes=st.lists(st.tuples(st.integers(1, 12), st.integers(0, 3)), max_size=12), size=st.integers(1, 5))
def test_rows_and_the_missing_ones_that_fill_a_batch_are_the_twins(sizes, size):
    found = list(RowForm().batches(gathered(sizes), size, lambda batch: batch))
    twins = list(PaddedForm().batches(gathered(sizes), size, lambda batch: batch))
    for batch, twin in zip(found, twins, strict=True):
        assert_same(batch, twin)


@pytest.mark.parametrize(("workers", "accumulation"), [(1, 1), (1, 4), (3, 2)])
def test_updates_are_the_twins(workers, accumulation):
    for rank in range(workers):
        share = {"workers": workers, "rank": rank, "accumulation": accumulation, "batch_size": 2}
        loaders = [Loader(Rows(DATA), form=form, open_files=2, **share) for form in (RowForm(), PaddedForm())]
        for _ in range(12):  # across epochs
            found, twin = (next(loader) for loader in loaders)
            assert found.position == twin.position
            for one, other in zip(found.batches, twin.batches, strict=True):
                assert_same(one, other)
        for loader in loaders:
            loader.close()


@pytest.mark.parametrize(("workers", "limit"), [(1, None), (2, 9), (5, 3)])
def test_batches_of_an_evaluation_are_the_twins(workers, limit):
    for rank in range(workers):
        share = {"batch_size": 4, "workers": workers, "rank": rank, "limit": limit}
        found, twins = (
            list(load_evaluation_batches(DATA, form=form, **share)) for form in (RowForm(), PaddedForm())
        )
        for batch, twin in zip(found, twins, strict=True):
            assert_same(batch, twin)


def test_rows_need_no_sample():
    empty = OpenedDataset(name="", layout=LAYOUT, shards=(), vocabulary_size=None)
    assert make_form(Rows(empty), batch_size=4, padded=True) == RowForm()
