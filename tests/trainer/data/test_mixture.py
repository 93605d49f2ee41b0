"""Mixtures in training: the order of a plain twin, resumed anywhere by any number of workers."""

import dataclasses
from collections import Counter
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertdata.dataset.mixture.opening import join_sources
from bertdata.dataset.mixture.turns import Turns
from bertdata.dataset.reader import OpenedDataset
from bertdata.records import ShardLayout
from tests.support.packed_data import pack_in_turn
from trainer.data.bins import RowsFromBins
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.generated import generate_data
from trainer.data.load_packing import RowsPackedAtLoad
from trainer.data.loader import Loader
from trainer.data.mixture import MixedOrder
from trainer.data.order import Order, Position
from trainer.data.packs import PackRows

LAYOUT = ShardLayout(max_seq_length=32, max_predictions_per_seq=5)
OPEN_FILES = 3

Taken = tuple[str, int, int]
"""A file, a row of it, and the epoch of its source."""


def source(name: str, files: int, examples: int) -> OpenedDataset:
    """Generated examples of any length, in files of decreasing sizes."""
    data = generate_data(LAYOUT, vocabulary_size=60_000, fill=0.4, files=files, examples=examples)
    shards = (
        dataclasses.replace(shard, name=f"{name}{number}", path=f"{name}{number}", examples=examples - number)
        for number, shard in enumerate(data.shards)
    )
    return dataclasses.replace(data, name=name, shards=tuple(shards))


A, B, C = source("a", 4, 50), source("b", 2, 30), source("c", 1, 20)
MIXED = join_sources([A, B], [7, 3])
KINDS = {
    "as stored": Rows(MIXED),
    "packed": PackRows(dataclasses.replace(pack_in_turn(MIXED), sources=MIXED.sources)),
    "at load": RowsPackedAtLoad(MIXED, window=50, sequences_per_row=6),
    "bins": RowsFromBins(MIXED, bins=3),
}


def order_of(data: OpenedDataset, seed: int = 7) -> Order:
    settings = {"seed": seed, "open_files": OPEN_FILES}
    if not data.sources:
        return Order(data.file_rows, **settings)
    return MixedOrder(data.file_rows, sources=data.sources, **settings)


def taken(data: OpenedDataset, number: int, first: int = 0, seed: int = 7) -> list[Taken]:
    """The next examples of the order, from a place on."""
    order = order_of(data, seed)
    position = Position(*divmod(first, order.examples))
    found: list[Taken] = [("", 0, 0)] * number
    for part in order.find(position, np.arange(number)):
        for row, target in zip(part.rows.tolist(), part.targets.tolist(), strict=True):
            found[target] = data.shards[part.file].name, row, part.epoch
    return found


def twin(sources: list[OpenedDataset], weights: list[int], number: int, seed: int) -> list[Taken]:
    """The sources' own orders, one example at a time, as their turns come."""
    turns, _ = Turns(weights).find_sources(np.arange(number))
    own = [iter(taken(data, number, seed=seed)) for data in sources]
    return [next(own[turn]) for turn in turns.tolist()]


def updates(kind: str, number: int, workers: int = 1, **settings: Any) -> list[list[bytes]]:
    """The bytes of the micro-batches of the next updates, of all workers, in their order."""
    rows = KINDS[kind]
    form = make_form(rows, batch_size=2, padded=True)
    loaders = [
        Loader(
            rows,
            form=form,
            batch_size=2,
            accumulation=4 // workers,
            workers=workers,
            rank=rank,
            open_files=OPEN_FILES,
            **settings,
        )
        for rank in range(workers)
    ]
    found = []
    for _ in range(number):
        turns = zip(*(next(loader).batches for loader in loaders), strict=True)
        found.append([batch.input_ids.numpy().tobytes() for turn in turns for batch in turn])
    for loader in loaders:
        loader.close()
    return found


@given(
    weights=st.lists(st.integers(1, 9), min_size=3, max_size=3),
    first=st.integers(0, 2000),
    seed=st.integers(0, 5),
)
def test_the_order_is_that_of_the_twin_at_any_place(weights, first, seed):
    sources = [A, B, C]
    whole = twin(sources, weights, first + 100, seed)
    assert taken(join_sources(sources, weights), 100, first, seed) == whole[first:]


def test_a_source_more_leaves_the_order_of_the_others_as_it_was():
    three = taken(join_sources([A, C, B], [7, 2, 3]), 900)
    two = [one for one in three if not one[0].startswith("c")]
    assert two == taken(MIXED, len(two))


def test_each_source_comes_in_its_own_order_with_its_own_epochs():
    found = taken(MIXED, 1000)
    for data in (A, B):
        own = [one for one in found if one[0].startswith(data.name)]
        assert own == taken(data, len(own))
        (epochs,) = {own[-1][2]}
        assert Counter(one[:2] for one in own if one[2] < epochs).most_common()[-1][1] == epochs
    assert {one[2] for one in found if one[0].startswith("b")} == {0, 1, 2, 3, 4, 5}


def test_epochs_of_the_sources_are_counted():
    order = order_of(MIXED)
    for place in (1, 10, 777):
        found = Counter(one[0][0] for one in taken(MIXED, place))
        assert order.epochs(place) == [found["a"] / A.examples, found["b"] / B.examples]


@pytest.mark.parametrize("kind", KINDS)
def test_an_update_has_the_same_rows_on_any_number_of_workers(kind):
    alone = updates(kind, 20)
    assert updates(kind, 20, workers=2) == alone
    assert updates(kind, 20, workers=4) == alone


NUMBER = 50
"""Updates between which a run stops."""


@cache
def never_stopped(kind):
    """The updates of a run, and the position behind each."""
    form = make_form(KINDS[kind], batch_size=2, padded=True)
    loader = Loader(KINDS[kind], form=form, batch_size=2, accumulation=4, open_files=OPEN_FILES)
    positions = [tuple(next(loader).position) for _ in range(NUMBER)]
    loader.close()
    assert len({position[0] for position in positions}) > 1, "epochs change between the stops"
    return updates(kind, NUMBER), positions


@settings(max_examples=20, deadline=None)
@given(kind=st.sampled_from(list(KINDS)), stop=st.integers(0, NUMBER - 3), workers=st.sampled_from([1, 2, 4]))
def test_any_stop_is_resumed_to_the_bit_by_any_number_of_workers(kind, stop, workers):
    wanted, positions = never_stopped(kind)
    found = updates(kind, 2, workers=workers, position=positions[stop])
    assert found == wanted[stop + 1 : stop + 3]


class Counting(type(A)):
    """Generated data that counts how often each shard is decoded."""

    counted: ClassVar[Counter[str]] = Counter()

    def batches(self, shard):
        self.counted[shard.name] += 1
        return super().batches(shard)


def test_files_of_a_source_with_a_small_weight_stay_open():
    mixed = join_sources([A, B], [999, 1])
    data = Counting(**{item.name: getattr(mixed, item.name) for item in dataclasses.fields(mixed)})
    rows = Rows(data)
    form = make_form(rows, batch_size=4, padded=True)
    Counting.counted.clear()
    loader = Loader(rows, form=form, batch_size=4, open_files=OPEN_FILES)
    for _ in range(1500):
        next(loader)
    loader.close()
    assert [Counting.counted[shard.name] for shard in B.shards] == [1, 1]


def test_a_resume_far_on_decodes_no_more_than_a_start():
    counts = []
    for position in ((0, 0, 0), (10**6, 100, 0)):
        data = Counting(**{item.name: getattr(MIXED, item.name) for item in dataclasses.fields(MIXED)})
        form = make_form(Rows(data), batch_size=4, padded=True)
        Counting.counted.clear()
        loader = Loader(Rows(data), form=form, batch_size=4, open_files=OPEN_FILES, position=position)
        next(loader)
        loader.close()
        counts.append(max(Counting.counted.values()))
    assert max(counts) <= 1
