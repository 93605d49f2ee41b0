"""Length bins: each example once an epoch, near equal lengths, the same for any workers and stop."""

import json
from collections import Counter
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.cli.main import main
from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import DatasetError, SettingsError
from bertdata.records import ShardLayout
from tests.support.dealers import dealer_by_lengths
from tests.support.training_runs import Trainer, losses, refuse, tensors, words
from trainer.config.settings import Config
from trainer.data.bins import (
    BinnedOrder,
    RowsFromBins,
    choose_bin_edges,
    convert_to_unit_places,
    sort_into_bins,
)
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.generated import generate_data
from trainer.data.loader import Loader
from trainer.data.order import Order, Position, draw_numbers
from trainer.data.padded_rows import RowForm, choose_width_step
from trainer.data.row_batches import RowBatch

LAYOUT = ShardLayout(max_seq_length=64, max_predictions_per_seq=10)
BINS = 4


def small(files: int = 5, examples: int = 97) -> OpenedDataset:
    """Generated examples of all lengths, in files of decreasing sizes."""
    data = generate_data(LAYOUT, vocabulary_size=60_000, files=files, examples=examples, fill=0.5)
    shards = (replace(shard, examples=examples - i) for i, shard in enumerate(data.shards))
    return replace(data, shards=tuple(shards))


def binned(data: OpenedDataset, update_rows: int, bins: int = BINS) -> BinnedOrder:
    order = Order([(shard.name, shard.examples) for shard in data.shards], seed=7, open_files=3)
    lengths = [np.asarray(data.lengths(shard)) for shard in data.shards]
    dealer = dealer_by_lengths(1, 0, 1, np.ones(update_rows))
    return BinnedOrder(replace(dealer, order=order, lengths=lengths.__getitem__, seed=7), bins)


@pytest.mark.parametrize(
    ("unit_rows", "bins", "updates"),
    [(3000, 4, 9), (512, 4, 17), (512, 16, 33), (100_000, 4, 3)],
)
def test_a_window_has_two_units_for_each_bin_and_8192_examples(unit_rows, bins, updates):
    """300,000 examples in updates of one unit: as many windows as have enough of both, of nearly one size."""
    order = Order([("rows", 300_000)], seed=7, open_files=1)
    dealer = replace(dealer_by_lengths(1, 0, 1, np.ones(unit_rows)), order=order)
    size = BinnedOrder(dealer, bins).size(0)
    assert size == updates * unit_rows
    assert size >= min(max(8192, 2 * bins * unit_rows), 300_000 // unit_rows * unit_rows)


def taken(order: BinnedOrder, position: Position, count: int) -> list[tuple[int, int, int]]:
    """(epoch, file, row) of the next examples."""
    found = [(0, 0, 0)] * count
    for part in order.find(position, np.arange(count)):
        for row, target in zip(part.rows.tolist(), part.targets.tolist(), strict=True):
            found[target] = part.epoch, part.file, row
    return found


# The order


@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    update_rows=st.integers(1, 30),
    bins=st.integers(2, 9),
)
def test_each_example_comes_once_an_epoch_and_epochs_follow_each_other(sizes, update_rows, bins):
    data = small(len(sizes))
    shards = (replace(shard, examples=size) for shard, size in zip(data.shards, sizes, strict=True))
    order, total = binned(replace(data, shards=tuple(shards)), update_rows, bins), sum(sizes)
    found = taken(order, Position(), 3 * total)
    everything = [(file, row) for file, size in enumerate(sizes) for row in range(size)]
    for epoch in range(3):
        own = found[epoch * total : (epoch + 1) * total]
        assert sorted(own) == [(epoch, file, row) for file, row in everything]


@given(update_rows=st.integers(1, 50), steps=st.lists(st.integers(0, 2000), min_size=1, max_size=5))
def test_a_position_is_where_the_examples_before_it_end(update_rows, steps):
    order = binned(small(), update_rows)
    position, passed = Position(), 0
    whole = taken(order, position, sum(steps) + 100)
    for step in steps:
        position, passed = order.advance(position, step), passed + step
        assert position.rows < order.size(position.examples)
        assert taken(order, position, 100) == whole[passed : passed + 100]


def test_the_bins_of_a_window_are_worked_by_hand():
    lengths = 8 * np.array([9, 1, 5, 3, 8, 2, 7, 4, 6, 9, 1, 5])
    order = sort_into_bins(lengths, 2, 3, "key")
    updates = order.reshape(6, 2)
    # sorted: 1 1 2 3 | 4 5 5 6 | 7 8 9 9, padded to 3, 6 and 9: 36, every other cut to 37 or more
    found = Counter(tuple(sorted(set(np.digitize(lengths[update], [28, 52])))) for update in updates)
    assert found == {(0,): 2, (1,): 2, (2,): 2}
    assert sorted(order.tolist()) == list(range(12))


def plain_edges(longest: list[int], bins: int) -> list[int]:
    """The least padded of all cuts; then that of fewest bins, then the one whose last bins are longest."""
    widths = [-(-length // 8) * 8 for length in longest]
    inner = [unit for unit in range(1, len(widths)) if widths[unit] > widths[unit - 1]]
    cuts = [cut for number in range(bins) for cut in combinations(inner, number)]
    edges = [[0, *cut, len(widths)] for cut in cuts]

    def padded(cut: list[int]) -> int:
        return sum((stop - start) * widths[stop - 1] for start, stop in pairwise(cut))

    return min(edges, key=lambda cut: (padded(cut), len(cut), cut[::-1]))


@given(
    longest=st.lists(st.integers(1, 80), min_size=1, max_size=9).map(sorted),
    bins=st.integers(1, 9),
)
def test_no_cut_of_a_window_is_padded_less(longest, bins):
    assert choose_bin_edges(np.array(longest), bins).tolist() == plain_edges(longest, bins)


@given(
    lengths=st.lists(st.integers(1, 70), min_size=1, max_size=60),
    update_rows=st.integers(6, 9),
    bins=st.integers(1, 9),
)
def test_the_order_is_that_of_a_plain_program(lengths, update_rows, bins):
    updates = len(lengths) // update_rows
    lengths = lengths[: updates * update_rows]
    drawn = draw_numbers(len(lengths) + updates, "key").tolist()
    by_length = sorted(range(len(lengths)), key=lambda example: (lengths[example], example))
    rows = []
    longest = [lengths[example] for example in by_length[update_rows - 1 :: update_rows]]
    for first, last in pairwise(plain_edges(longest, bins) if longest else []):
        own = sorted(by_length[first * update_rows : last * update_rows], key=lambda example: drawn[example])
        rows += [own[start : start + update_rows] for start in range(0, len(own), update_rows)]
    turns = sorted(range(updates), key=lambda update: drawn[len(lengths) + update])
    expected = [example for turn in turns for example in rows[turn]]
    assert sort_into_bins(np.array(lengths), update_rows, bins, "key").tolist() == expected


def test_the_order_is_the_same_on_every_machine_and_for_ever():
    lengths = 8 * np.array([9, 1, 5, 3, 8, 2, 7, 4, 6, 9, 1, 5])
    assert sort_into_bins(lengths, 2, 3, "key").tolist() == [2, 11, 8, 7, 0, 4, 5, 10, 9, 6, 1, 3]


def test_updates_of_bins_come_in_no_order_of_length():
    lengths = np.arange(8192) % 512
    means = lengths[sort_into_bins(lengths, 64, 8, 1)].reshape(-1, 64).mean(axis=1)
    ranks = np.argsort(np.argsort(means))
    assert abs(np.corrcoef(ranks, np.arange(len(ranks)))[0, 1]) < 0.3


def test_no_window_is_much_shorter_than_the_others():
    order = binned(small(5, 40_000), 100, 8)
    sizes, position = [], Position()
    while position.epoch == 0:
        sizes.append(order.size(position.examples))
        position = order.advance(position, sizes[-1])
    assert sum(sizes[:-1]) <= order.examples < sum(sizes) + 1
    assert min(sizes[:-1]) >= 8000
    assert max(sizes) < 2 * 8800


@pytest.mark.parametrize(("micro_batches", "batch_size"), [(64, 32), (96, 64), (8, 4), (1, 7)])
def test_the_units_of_an_update_are_the_groups_that_are_dealt_together(micro_batches, batch_size):
    for rank in range(micro_batches):
        dealer = dealer_by_lengths(micro_batches, rank, micro_batches, np.ones(micro_batches * batch_size))
        places = convert_to_unit_places(np.arange(3 * dealer.update_rows), dealer)
        assert sorted(places) == list(range(3 * dealer.update_rows))
        (unit,) = np.unique(places[dealer.offsets.ravel()] // (dealer.group * batch_size))
        assert unit == rank // dealer.group


def test_groups_of_a_large_update_come_from_bins_of_their_own():
    """64 micro-batches of 32 examples: two groups, each from one of 16 bins, an update from several."""
    layout = ShardLayout(max_seq_length=512, max_predictions_per_seq=80)
    data = generate_data(layout, vocabulary_size=300, files=4, examples=8192, fill=0.5)
    loader = Loader(
        RowsFromBins(data, bins=16), form=RowForm(width_step=8), batch_size=32, accumulation=64, seed=7
    )
    widths = np.array([[batch.input_ids.shape[1] for batch in next(loader).batches] for _ in range(12)])
    loader.close()
    groups = widths.reshape(24, 32)
    assert (np.ptp(groups, axis=1) <= 64).all()
    assert np.ptp(groups.mean(axis=1).reshape(12, 2), axis=1).max() > 100


# The loader


def updates(data: OpenedDataset, count: int, form: Any = None, **settings: Any) -> list[Counter[bytes]]:
    """The examples of each update over all workers."""
    workers = settings.pop("workers", 1)
    each = {"batch_size": 4, "open_files": 3, "seed": 7} | settings
    loaders = [
        Loader(
            RowsFromBins(data, bins=BINS),
            form=form or RowForm(width_step=8),
            workers=workers,
            rank=rank,
            **each,
        )
        for rank in range(workers)
    ]
    found = []
    for _ in range(count):
        batches = [batch for loader in loaders for batch in next(loader).batches]
        found.append(Counter(example for batch in batches for example in example_bytes(batch)))
    for loader in loaders:
        loader.close()
    return found


def example_bytes(batch: Any) -> list[bytes]:
    ids = batch.input_ids.numpy()
    count = int((batch.next_sentence_labels >= 0).sum())
    if isinstance(batch, RowBatch):
        return [ids[row][batch.attention_mask[row].numpy() > 0].tobytes() for row in range(count)]
    return [ids[batch.ends[row] : batch.ends[row + 1]].tobytes() for row in range(count)]


@pytest.mark.parametrize("workers", [2, 8])
@pytest.mark.parametrize("rows", [True, False])
def test_updates_do_not_depend_on_workers_or_form(workers, rows):
    data = small()
    alone = updates(data, 40, batch_size=32)
    form = make_form(RowsFromBins(data, bins=BINS), batch_size=4, padded=rows, micro_batches=8)
    assert updates(data, 40, form, workers=workers, accumulation=8 // workers) == alone


def test_twenty_stops_resume_at_the_exact_example():
    data = small()
    settings: dict[str, Any] = {"batch_size": 8, "accumulation": 2}
    loader = Loader(
        RowsFromBins(data, bins=BINS), form=RowForm(width_step=8), open_files=3, seed=7, **settings
    )
    positions = [(0, 0, 0), *(tuple(next(loader).position) for _ in range(90))]
    loader.close()
    whole = updates(data, 90, **settings)
    for stop in np.random.default_rng(3).integers(1, 85, 20).tolist():
        assert updates(data, 5, position=positions[stop], **settings) == whole[stop : stop + 5], stop


def padding(rows: Rows, count: int, form: Any, **settings: Any) -> float:
    """The share of tokens in batches that are padding."""
    loader = Loader(rows, form=form, open_files=3, seed=7, **settings)
    real = tokens = 0
    for _ in range(count):
        for batch in next(loader).batches:
            tokens += batch.input_ids.numel()
            real += int(batch.attention_mask.sum()) if isinstance(batch, RowBatch) else batch.tokens
    loader.close()
    return 1 - real / tokens


def test_rows_from_bins_are_padded_little():
    layout = ShardLayout(max_seq_length=512, max_predictions_per_seq=80)
    data = generate_data(layout, vocabulary_size=30_000, files=4, examples=4096, fill=0.5)
    settings = {"batch_size": 32, "accumulation": 2}
    assert padding(Rows(data), 60, RowForm(), **settings) > 0.4
    rows = RowsFromBins(data, bins=64)
    assert padding(rows, 256, make_form(rows, batch_size=32, padded=True), **settings) < 0.03
    few = make_form(rows, batch_size=32, padded=True, few_widths=True)
    assert padding(rows, 256, few, **settings) < 0.03
    flat = make_form(rows, batch_size=32, micro_batches=2)
    assert padding(rows, 256, flat, **settings) < 0.06


@pytest.mark.parametrize(("name", "most"), [("wikipedia_512", 0.02), ("squad_1_1_384", 0.03)])
def test_published_lengths_are_padded_by_less_than_3_percent(kit, name, most):
    counts = np.array(json.loads((kit / "packing" / "histograms.json").read_text())[name])
    lengths = 1 + np.arange(len(counts))
    drawn = draw_numbers(1 << 17, "lengths") % np.uint64(counts.sum())
    sample = lengths[np.searchsorted(np.cumsum(counts), drawn, side="right")]
    assert 0.45 < 1 - sample.mean() / len(counts) < 0.6
    for update_rows, window in ((8, 8192), (32, 8192), (64, 8192), (256, 1 << 15), (1024, 1 << 17)):
        windows = np.split(sample, range(window, len(sample), window))
        orders = [own[sort_into_bins(own, update_rows, 64, "key")] for own in windows]
        rows = np.concatenate(orders).reshape(-1, min(update_rows, 32))
        widths = -(-rows.max(axis=1) // 8) * 8
        assert 1 - rows.sum() / (rows.shape[1] * widths.sum()) < most, update_rows


@pytest.mark.parametrize(
    ("longest", "widths", "step"), [(512, None, 8), (512, 8, 64), (512, 64, 8), (500, 8, 64), (64, 100, 8)]
)
def test_few_widths_are_at_most_as_many_as_bins(longest, widths, step):
    assert choose_width_step(longest, widths) == step
    assert widths is None or -(-longest // step) <= widths


# Bad input, and a run


def test_bins_need_lengths_and_single_examples():
    data = small()
    full = generate_data(LAYOUT, vocabulary_size=100, fill=1.0)
    with pytest.raises(SettingsError, match="bins need the lengths of its examples, and it has none"):
        RowsFromBins(full)
    with pytest.raises(
        SettingsError, match=r"its rows are packed \(layout flat\); bins need single examples"
    ):
        RowsFromBins(replace(data, layout=replace(LAYOUT, packing="flat")))
    with pytest.raises(SettingsError, match="bins and pack_on_load cannot be used together"):
        Config.of(bins=4, pack_on_load=True)


@pytest.mark.parametrize("position", [(0, 0, 3), (0, 0, 1_000_000)])
def test_a_position_of_other_updates_is_refused(position):
    data = small()
    rows = RowsFromBins(data, bins=4)
    with pytest.raises(DatasetError, match="examples from length bins have no position"):
        Loader(rows, form=RowForm(width_step=8), batch_size=4, accumulation=2, position=position)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory, corpus, small_vocabulary_file):
    place = tmp_path_factory.mktemp("binned") / "set"
    flags = ["--max-seq-length=64", "--max-predictions-per-seq=10", "--dupe-factor=1", "--workers=1"]
    flags += ["--short-seq-prob=0.9", "--output", str(place), "--vocab", str(small_vocabulary_file)]
    assert main(["create", *map(str, corpus), *flags]) == 0
    return place


@pytest.mark.usefixtures("one_thread")
def test_the_trainer_learns_from_bins_and_resumes_exactly(dataset, tmp_path, capsys):
    trainer = Trainer(capsys)
    flags = ["--bins=4", "--rows", "--masking=dynamic"]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    outcome = trainer(*words(dataset, whole, *flags))
    assert outcome.status == 0, outcome.err
    assert "rows padded to the longest of a micro-batch" in outcome.err
    assert trainer(*words(dataset, parts, *flags, "--steps-this-run=4")).status == 0
    other = trainer(*words(dataset, parts, "--bins=4", "--rows", "--resume", "--batch-size=8"))
    refuse(other, 1, "its order is from 4 length bins of least padding, updates of 1 x 4 examples")
    assert trainer(*words(dataset, parts, *flags, "--resume")).status == 0
    assert losses(parts) == losses(whole)
    assert tensors(parts, 10) == tensors(whole, 10)
