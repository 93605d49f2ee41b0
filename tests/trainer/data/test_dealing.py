"""The deal of an update's examples: complete, even, and the same however the workers are counted."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.dataset.reader import OpenedDataset
from bertdata.records import ShardLayout
from tests.support.dealers import dealer_by_lengths, first_rows
from tests.support.padded_examples import PaddedExamples, PaddedForm
from trainer.config.settings import Config
from trainer.data.examples import Rows
from trainer.data.generated import generate_data
from trainer.data.loader import Loader
from trainer.data.order import balance_tokens, choose_group_size
from trainer.data.rows import find_rows

REAL = ShardLayout(max_seq_length=512, max_predictions_per_seq=80)
SMALL = ShardLayout(max_seq_length=24, max_predictions_per_seq=3)


@st.composite
def lengths_and_parts(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    groups, parts, each = draw(st.integers(1, 3)), draw(st.integers(1, 6)), draw(st.integers(1, 6))
    items = st.lists(st.integers(1, 512), min_size=parts * each, max_size=parts * each)
    return np.array([draw(items) for _ in range(groups)], np.uint16), parts


@given(given_=lengths_and_parts())
def test_each_part_gets_as_many_examples_and_each_example_goes_to_one_part(given_):
    lengths, parts = given_
    groups, count = lengths.shape
    dealt = balance_tokens(lengths, parts)
    assert dealt.shape == (groups, parts, count // parts)
    assert (np.sort(dealt.reshape(groups, -1), axis=1) == np.arange(count)).all()
    assert (np.diff(dealt, axis=2) > 0).all()


@given(given_=lengths_and_parts())
def test_no_two_parts_differ_by_more_than_the_longest_example(given_):
    lengths, parts = given_
    dealt = balance_tokens(lengths, parts)
    for row, own in zip(lengths.astype(int), dealt, strict=True):
        totals = row[own].sum(axis=1)
        assert totals.max() - totals.min() <= row.max() - row.min()


@given(given_=lengths_and_parts())
def test_groups_are_dealt_each_by_itself(given_):
    lengths, parts = given_
    apart = [balance_tokens(row[np.newaxis], parts)[0] for row in lengths]
    assert (balance_tokens(lengths, parts) == np.stack(apart)).all()


def test_the_deal_is_the_same_on_every_machine_and_for_ever():
    lengths = np.array([[9, 4, 7, 7, 1, 8, 2, 5, 5]])
    # round 1: 9, 8, 7 to parts 0, 1, 2; round 2: 7 to part 2, then 5 to part 1 and 5 to part 0; round 3: 4 to
    # part 1 with 13 tokens, 2 to part 0 with 14, the first of two, 1 to part 2
    assert balance_tokens(lengths, 3).tolist() == [[[0, 6, 8], [1, 5, 7], [2, 3, 4]]]


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_examples_of_one_length_are_dealt_in_turn(parts):
    dealt = balance_tokens(np.full((2, 20), 7), parts)
    assert (dealt == np.arange(20).reshape(-1, parts).T).all()


@given(micro_batches=st.integers(1, 3000), batch_size=st.integers(1, 2048))
def test_a_group_is_a_divisor_and_holds_enough(micro_batches, batch_size):
    size = choose_group_size(micro_batches, batch_size)
    assert micro_batches % size == 0
    assert size == micro_batches or (size >= 8 and size * batch_size >= 1024)


@given(
    workers=st.integers(1, 6), accumulation=st.integers(1, 6), batch_size=st.integers(1, 5), data=st.data()
)
def test_a_micro_batch_has_the_same_examples_for_every_number_of_workers(
    workers, accumulation, batch_size, data
):
    total = workers * accumulation
    count = total * batch_size
    lengths = np.array(data.draw(st.lists(st.integers(1, 512), min_size=count, max_size=count)))

    def update(workers: int, accumulation: int) -> list[list[int]]:
        found = {}
        for rank in range(workers):
            examples = first_rows(dealer_by_lengths(workers, rank, workers * accumulation, lengths))
            assert examples.shape == (accumulation, batch_size)
            found |= {rank + workers * turn: row.tolist() for turn, row in enumerate(examples)}
        return [found[number] for number in range(total)]

    assert update(workers, accumulation) == update(1, total) == update(total, 1)


def updates(
    data: OpenedDataset, count: int, workers: int, batch_size: int, **more: int
) -> list[list[PaddedExamples]]:
    """The micro-batches of each update, all workers' in order."""
    loaders = [
        Loader(Rows(data), form=PaddedForm(), workers=workers, rank=rank, batch_size=batch_size, **more)
        for rank in range(workers)
    ]
    try:
        rounds = [[next(loader).batches for loader in loaders] for _ in range(count)]
    finally:
        for loader in loaders:
            loader.close()
    return [[batch for turn in zip(*found, strict=True) for batch in turn] for found in rounds]


def tokens(batches: list[PaddedExamples]) -> list[int]:
    return [int(batch.attention_mask.sum()) for batch in batches]


def test_eight_workers_have_tokens_within_three_percent_of_the_mean():
    data = generate_data(REAL, vocabulary_size=100, fill=0.5, files=8, examples=512)
    for found in updates(data, 10, workers=8, batch_size=16):
        shares = tokens(found)
        assert max(shares) <= 1.03 * sum(shares) / len(shares)
    in_turn = generate_data(REAL, vocabulary_size=100, fill=0.5, files=8, examples=512)
    lengths = np.concatenate([in_turn.lengths(shard) for shard in in_turn.shards])[: 8 * 16 * 4]
    naive = lengths.reshape(4, 16, 8).sum(axis=1)
    assert (naive.max(axis=1) > 1.03 * naive.mean(axis=1)).all()  # so the test can fail


def examples(batches: list[PaddedExamples]) -> list[list[int]]:
    return [row.tolist() for batch in batches for row in batch.input_ids]


def test_the_examples_of_an_update_do_not_change_by_the_deal():
    data = generate_data(SMALL, vocabulary_size=60_000, fill=0.5, files=3, examples=40)
    dealt = updates(data, 7, workers=4, batch_size=3, open_files=2)
    whole = updates(data, 7, workers=1, batch_size=12, open_files=2)
    for ours, theirs in zip(dealt, whole, strict=True):
        assert sorted(examples(ours)) == sorted(examples(theirs))
        assert examples(ours) != examples(theirs)


@pytest.mark.parametrize(("workers", "accumulation"), [(1, 4), (2, 2)])
def test_dealt_updates_do_not_depend_on_the_number_of_workers(workers, accumulation):
    data = generate_data(SMALL, vocabulary_size=60_000, fill=0.5, files=3, examples=40)
    other = updates(data, 15, workers=workers, accumulation=accumulation, batch_size=3, open_files=2)
    alone = updates(data, 15, workers=4, accumulation=1, batch_size=3, open_files=2)
    assert [[examples([batch]) for batch in found] for found in other] == [
        [examples([batch]) for batch in found] for found in alone
    ]


def test_rows_are_as_stored_unless_the_configuration_says_more():
    data = generate_data(SMALL, vocabulary_size=100, fill=0.5, files=2, examples=30)
    rows = find_rows(Config.of(), data)
    assert rows == Rows(data)
    assert rows.by_lengths
    assert not find_rows(Config.of(), replace(data, fill=1.0)).by_lengths
    assert rows.describe("2 x 4 examples") == "as stored"


def test_a_resumed_run_deals_the_same_micro_batches():
    data = generate_data(SMALL, vocabulary_size=60_000, fill=0.5, files=3, examples=40)
    loader = Loader(Rows(data), form=PaddedForm(), batch_size=3, accumulation=4, open_files=2)
    seen = [next(loader) for _ in range(12)]
    loader.close()
    again = Loader(
        Rows(data), form=PaddedForm(), batch_size=3, accumulation=4, open_files=2, position=seen[4].position
    )
    for expected in seen[5:]:
        assert examples(next(again).batches) == examples(expected.batches)
    again.close()
