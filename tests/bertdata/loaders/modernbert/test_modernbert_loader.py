"""ModernBERT's loader over datasets: its batches, resuming, settings that do not fit."""

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import bertdata
from bertdata.errors import DatasetError, SettingsError
from bertdata.loaders.modernbert.loader import ModernBertLoader
from bertdata.loaders.modernbert.settings import ModernBertSettings, TokenWarmup
from bertdata.loaders.modernbert.warmup import BatchWarmup
from bertdata.loaders.sequences import StoredSequences
from bertdata.steps.open_dataset import ExampleDataset
from tests.support.listed_sequences import ListedSequences
from tests.support.paths import ROOT

VOCABULARY = ROOT / "golden" / "vocab.txt"
SETTINGS = ModernBertSettings(batch_size=8, micro_batch_size=2, max_seq_len=16, order_seed=3, mask_seed=4)
ENGINES = ("native", "python")


def listed(count: int = 150) -> ListedSequences:
    return ListedSequences([[7, *range(10, 11 + number * 7 % 18), 8] for number in range(count)])


def loader_of(settings: ModernBertSettings = SETTINGS, count: int = 150, **given: Any) -> ModernBertLoader:
    return ModernBertLoader(listed(count), settings, mask_id=9, padding_id=0, **given)


def as_values(batch: dict[str, Any]) -> dict[str, Any]:
    found = {name: batch[name].tolist() for name in ("input_ids", "labels", "attention_mask")}
    return found | {"spans": [row.tolist() for row in batch["cu_seqlens"]], "most": batch["max_seqlen"]}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("warmup", [None, TokenWarmup(sequences=2, tokens=3000)])
def test_it_goes_on_from_the_state_behind_every_batch(engine, warmup):
    """Over the ends of epochs too, and through JSON."""
    settings = replace(SETTINGS, warmup=warmup)
    loader, states, batches = loader_of(settings, engine=engine), [], []
    states.append(loader.state_dict())
    while loader.state_dict()["epoch"] < 3:
        batches.append(as_values(next(loader)))
        states.append(json.loads(json.dumps(loader.state_dict())))
    assert len(batches) > 20
    for number, state in enumerate(states[:-1]):
        resumed = loader_of(settings, engine=engine)
        resumed.load_state_dict(state)
        assert as_values(next(resumed)) == batches[number]
        assert resumed.state_dict() == states[number + 1]


def test_a_state_is_as_small_as_the_buffer():
    loader = loader_of(replace(SETTINGS, batch_size=40), count=5000)
    next(loader)
    state = loader.state_dict()
    assert len(state["waiting"]) <= 200
    assert len(json.dumps(state)) < 2000


def test_an_epoch_by_itself_is_that_of_the_endless_loader():
    endless = loader_of()
    for epoch in range(3):
        alone = [as_values(batch) for batch in loader_of(epoch=epoch)]
        assert alone == [as_values(batch) for batch in islice(endless, len(alone))]
        assert alone


def test_ranks_have_their_own_sequences_and_the_same_masks():
    """As in the original: masks are a function of seed and epoch alone."""
    settings = replace(SETTINGS, micro_batch_size=8, shuffle=False, mask_prob=1.0)
    first, second = (next(loader_of(replace(settings, rank=rank, world=2))) for rank in (0, 1))
    assert first["input_ids"].tolist() != second["input_ids"].tolist()
    cells = first["attention_mask"].astype(bool) & second["attention_mask"].astype(bool)
    masked = [(batch["input_ids"] == 9)[cells].tolist() for batch in (first, second)]
    assert masked[0] == masked[1]
    assert any(masked[0])


def test_the_warmup_adds_a_row_where_the_tokens_reach_its_limit():
    settings = replace(SETTINGS, batch_size=10, warmup=TokenWarmup(sequences=4, tokens=1801), world=2)
    warmup = BatchWarmup(settings)  # 901 tokens: rows 2, 3, 4 of 9, then 5
    limits = [201, 501, 901]
    assert [warmup.rows(limit - 1) for limit in limits] == [2, 3, 4]
    assert [warmup.rows(limit) for limit in limits] == [3, 4, 5]
    assert warmup.rows(0) == 2
    assert BatchWarmup(replace(settings, warmup=None)).rows(0) == 5


def test_too_few_examples_for_a_batch_are_an_error_and_no_endless_loop():
    with pytest.raises(DatasetError, match="3 examples of a rank do not fill a batch of 4 rows"):
        next(loader_of(count=3))
    assert list(loader_of(count=3, epoch=0)) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"batch_size": 7}, "multiple of micro_batch_size"),
        ({"micro_batch_size": 0}, "micro_batch_size is 0"),
        ({"mask_prob": 0}, "mask_prob is 0"),
        ({"rank": 2, "world": 2}, "rank is 2"),
        ({"buffer_size": 8}, "buffer_size is 8"),
        ({"order_seed": -1}, "order_seed is -1"),
        ({"warmup": TokenWarmup(sequences=3, tokens=9)}, "starts from 3"),
        ({"warmup": TokenWarmup(sequences=8, tokens=9)}, "starts from 8"),
        ({"warmup": TokenWarmup(sequences=2, tokens=0)}, "takes 0 tokens"),
    ],
)
def test_a_setting_out_of_range_is_named(changed, said):
    with pytest.raises(SettingsError, match=said):
        replace(SETTINGS, **changed)


def test_a_state_of_other_data_or_settings_is_refused():
    state = loader_of().state_dict()
    with pytest.raises(SettingsError, match="has data"):
        loader_of(count=151).load_state_dict(state)
    with pytest.raises(SettingsError, match="has settings"):
        loader_of(replace(SETTINGS, mask_prob=0.15)).load_state_dict(state)
    with pytest.raises(SettingsError, match="of epoch 0"):
        loader_of(epoch=1).load_state_dict(state)
    with pytest.raises(SettingsError, match="warm-up counts"):
        loader_of(replace(SETTINGS, warmup=TokenWarmup(sequences=2, tokens=9)), epoch=1)


@pytest.fixture(scope="module", params=["tfrecord", "parquet"])
def dataset(request: Any, corpus: list[Path], tmp_path_factory: Any) -> ExampleDataset:
    place = tmp_path_factory.mktemp("blocks") / "set"
    made = {"objective": "mlm", "masks": False, "max_seq_length": 32, "blocks": "eos"}
    bertdata.create(corpus, place, vocab=VOCABULARY, format=request.param, workers=1, **made)
    return bertdata.open_dataset(place)


GIVEN = {"batch_size": 8, "micro_batch_size": 2, "seed": 5}


def test_a_datasets_batches_are_those_of_its_examples_in_order(dataset):
    sequences = ListedSequences([example.ids for example in dataset])
    words = VOCABULARY.read_text("utf-8").splitlines()
    ids = {"mask_id": words.index("[MASK]"), "padding_id": words.index("[PAD]")}
    settings = ModernBertSettings(batch_size=8, micro_batch_size=2, max_seq_len=24, order_seed=5, mask_seed=5)
    wanted = list(ModernBertLoader(sequences, settings, **ids, epoch=1))
    found = list(dataset.modernbert(**GIVEN, max_seq_len=24, epoch=1))
    assert [*map(as_values, found)] == [*map(as_values, wanted)]
    assert len(found) > 3


def test_without_a_seed_the_originals_are_taken(dataset):
    settings = dataset.modernbert(batch_size=8, micro_batch_size=2).state_dict()["settings"]
    assert (settings["order_seed"], settings["mask_seed"], settings["max_seq_len"]) == (9176, 42, 32)


def test_tensors_are_the_arrays(dataset):
    arrays, tensors = next(dataset.modernbert(**GIVEN)), next(dataset.modernbert(**GIVEN, tensors=True))
    assert as_values(arrays) == as_values(tensors)
    assert {tensors[name].dtype for name in ("input_ids", "labels", "attention_mask")} == {torch.int64}
    assert {row.dtype for row in tensors["cu_seqlens"]} == {torch.int32}


def test_masks_that_the_examples_have_do_not_count(dataset, corpus, tmp_path):
    bertdata.create(
        corpus,
        tmp_path / "masked",
        vocab=VOCABULARY,
        objective="mlm",
        max_seq_length=32,
        workers=1,
        blocks="eos",
    )
    masked = bertdata.open_dataset(tmp_path / "masked")
    plain = [example.ids for example in dataset]
    found = StoredSequences(masked.opened)
    ids = found.take(np.arange(len(masked)), 32).tolist()
    assert sorted(ids) == sorted(id for row in plain for id in row)
