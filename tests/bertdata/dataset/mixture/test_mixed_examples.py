"""open_dataset of a mixture: the order, the ends of epochs, its views, masks and refusals."""

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader

import bertdata
from bertdata.dataset.mixture.turns import Turns
from bertdata.errors import DatasetError, SettingsError, ShardError
from tests.support.paths import ROOT

VOCABULARY = ROOT / "golden" / "vocab.txt"


def make(corpus: Sequence[Path], place: Path, length: int = 64, vocab: Path = VOCABULARY) -> Path:
    sizes = {"max_seq_length": length, "max_predictions_per_seq": 10, "dupe_factor": 1}
    bertdata.create(corpus, place, vocab=vocab, workers=1, **sizes)
    return place


@pytest.fixture(scope="module")
def sets(corpus: list[Path], tmp_path_factory: Any) -> list[Path]:
    """Three datasets of one shard each, of different sizes."""
    place = tmp_path_factory.mktemp("sets")
    return [make([part], place / name) for part, name in zip(corpus, "abc", strict=True)]


def twin(sets: Sequence[Path], weights: Sequence[int], first: int, count: int) -> list[Any]:
    """The examples of a mixture, taken one at a time from lists."""
    held = [list(bertdata.open_dataset(path)) for path in sets]
    sources, numbers = Turns(weights).find_sources(np.arange(first, first + count))
    return [
        held[source][number % len(held[source])]
        for source, number in zip(sources.tolist(), numbers.tolist(), strict=True)
    ]


def test_examples_come_as_the_turns_say(sets):
    data = bertdata.open_dataset(dict(zip(sets, (0.5, 0.3, 0.2), strict=True)), examples=700)
    assert len(data) == 700
    assert list(data) == twin(sets, [5, 3, 2], 0, 700)
    assert data.opened.sources[0].name == str(sets[0])


def test_an_epoch_ends_with_the_first_source_or_the_last(sets):
    a, b = sets[:2]
    sizes = [len(bertdata.open_dataset(path)) for path in (a, b)]
    first = bertdata.open_dataset({a: 9, b: 1})
    every = bertdata.open_dataset({a: 9, b: 1}, stopping_strategy="all_exhausted")
    for data, ended in ((first, 0), (every, 1)):
        sources, numbers = Turns([9, 1]).find_sources(np.arange(len(data)))
        assert sources[-1] == ended
        assert numbers[-1] == sizes[ended] - 1
    assert len(first) < len(every)
    assert list(every)[: len(first)] == list(first)


def test_an_epoch_begins_where_the_one_before_has_ended(sets):
    mixture = {sets[0]: 2, sets[1]: 1}
    length = len(bertdata.open_dataset(mixture))
    epochs = [list(bertdata.open_dataset(mixture, epoch=epoch)) for epoch in range(3)]
    assert [one for epoch in epochs for one in epoch] == twin(sets[:2], [2, 1], 0, 3 * length)


def test_set_epoch_takes_the_examples_of_that_epoch(sets):
    mixture = {sets[0]: 2, sets[1]: 1}
    view = bertdata.open_dataset(mixture).masked(seed=1).torch()
    view.set_epoch(2)
    assert list(view) == list(bertdata.open_dataset(mixture, epoch=2).masked(seed=1))


@pytest.mark.parametrize("world", [1, 3])
def test_ranks_and_workers_share_the_examples(sets, world):
    data = bertdata.open_dataset({sets[0]: 7, sets[1]: 3})
    found = []
    for rank in range(world):
        ours = pickle.loads(pickle.dumps(data)).torch(rank=rank, world=world)
        found += [example for batch in DataLoader(ours, 16, collate_fn=list) for example in batch]
    assert found == list(data)
    batches = DataLoader(data.torch(), 16, collate_fn=data.collator())
    assert sum(len(batch["input_ids"]) for batch in batches) == len(data)


def test_numpy_has_the_same_order(sets):
    data = bertdata.open_dataset({sets[0]: 7, sets[1]: 3})
    ids = [row for rows in data.numpy(batch_size=100) for row in rows["input_ids"].tolist()]
    assert [row[: len(one.ids)] for row, one in zip(ids, data, strict=True)] == [one.ids for one in data]


@settings(max_examples=15)
@given(bounds=st.tuples(st.integers(0, 500), st.integers(0, 500)).map(sorted))
def test_any_run_is_that_part_of_the_whole(sets, bounds):
    data = bertdata.open_dataset({sets[0]: 7, sets[1]: 3}, examples=500, epoch=2)
    start, stop = bounds
    found = [one for batch in data.opened.read_range(range(start, stop)) for one in batch.examples()]
    assert found == twin(sets[:2], [7, 3], 1000 + start, stop - start)


def test_masks_drawn_anew_are_others_in_each_pass_over_a_source(sets):
    mixed = bertdata.open_dataset({sets[0]: 1, sets[1]: 1}, examples=1200).masked(seed=5)
    held = [
        [list(bertdata.open_dataset(path).masked(seed=5, epoch=epoch)) for epoch in range(9)]
        for path in sets[:2]
    ]
    sources, numbers = Turns([1, 1]).find_sources(np.arange(1200))
    for source, number, one in zip(sources.tolist(), numbers.tolist(), mixed, strict=True):
        epoch, row = divmod(number, len(held[source][0]))
        assert one == held[source][epoch][row]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"epoch": -1}, "epoch is -1, expected an integer of 0 or more"),
        ({"examples": 0}, "examples is 0, expected an integer of 1 or more"),
        ({"examples": 1.5}, r"examples is 1\.5, expected an integer of 1 or more"),
        ({"stopping_strategy": "never"}, "'never', expected first_exhausted or all_exhausted"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(sets, settings, said):
    with pytest.raises(SettingsError, match=said):
        bertdata.open_dataset({sets[0]: 1}, **settings)


def test_settings_of_a_mixture_need_weights(sets):
    with pytest.raises(SettingsError, match="epoch, examples: for a mixture; give paths with weights"):
        bertdata.open_dataset(sets, epoch=1, examples=3)
    with pytest.raises(SettingsError, match="the mixture has no sources"):
        bertdata.open_dataset({})


@pytest.mark.parametrize("view", ["fairseq_batches", "modernbert"])
def test_a_view_that_has_an_order_of_its_own_is_refused(sets, view):
    sizes = {"fairseq_batches": {"batch_size": 8}, "modernbert": {"batch_size": 8, "micro_batch_size": 8}}
    with pytest.raises(SettingsError, match=rf"a mixture has no {view}\(\); iterate over it"):
        list(getattr(bertdata.open_dataset({sets[0]: 1}), view)(**sizes.get(view, {})))


def test_sources_must_fit_each_other_as_united_ones_do(sets, corpus, tmp_path):
    other = make(corpus[:1], tmp_path / "long", length=96)
    with pytest.raises(ShardError, match="max_seq_length is 96, expected 64"):
        bertdata.open_dataset({sets[0]: 1, other: 1})
    with pytest.raises(DatasetError, match=r"belongs to both .*; mix different files"):
        bertdata.open_dataset({sets[0]: 1, sets[0] / "*.tfrecord": 1})
    vocab = tmp_path / "vocab.txt"
    vocab.write_text(VOCABULARY.read_text(encoding="utf-8") + "another\n", encoding="utf-8")
    other = make(corpus[:1], tmp_path / "words", vocab=vocab)
    with pytest.raises(DatasetError, match=r"was made with vocabulary .*, expected .*, that of"):
        bertdata.open_dataset({sets[0]: 1, other: 1})
