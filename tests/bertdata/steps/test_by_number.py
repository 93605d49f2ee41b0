"""open_dataset's examples by number, and masks that follow set_epoch."""

import importlib
import os
import pickle
import pkgutil
import shutil
from pathlib import Path
from random import Random
from typing import Any

import datasets as huggingface
import numpy as np
import pytest
import torch
import transformers
from torch.utils.data import DataLoader

import bertdata
import bertdata.dataset
from bertdata.dataset import random_access
from bertdata.dataset.masked_data import MaskedData
from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import SettingsError, ShardError
from bertdata.examples import columns
from tests.support.paths import ROOT
from tests.support.tokenizer_files import train_bpe

VOCABULARY = ROOT / "golden" / "vocab.txt"
SIZES = {"max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 1}


@pytest.fixture(scope="module", params=["tfrecord", "hdf5", "parquet", "packed"])
def dataset(request: Any, corpus: list[Path], tmp_path_factory: Any) -> Path:
    """Three shards of BERT's examples of 64 ids, in each container and as packed rows."""
    place: Path = tmp_path_factory.mktemp(request.param)
    container = "tfrecord" if request.param == "packed" else request.param
    bertdata.create(corpus, place / "set", vocab=VOCABULARY, format=container, workers=1, **SIZES)
    if request.param != "packed":
        return place / "set"
    bertdata.pack(place / "set", place / "packed", layout="flat", workers=1)
    return place / "packed"


def test_examples_by_number_are_those_of_a_list(dataset):
    data = bertdata.open_dataset(dataset)
    wanted = list(data)
    order = [*range(-len(data), len(data))]
    Random(1).shuffle(order)
    assert [data[number] for number in order] == [wanted[number] for number in order]
    for chosen in (slice(None), slice(5, 40, 7), slice(-3, None), slice(40, 5, -9), slice(9, 9)):
        assert data[chosen] == wanted[chosen]
    assert data[np.int64(3)] == wanted[3]
    assert data.__getitems__(order[:50]) == [wanted[number] for number in order[:50]]
    assert pickle.loads(pickle.dumps(data))[-1] == wanted[-1]


@pytest.mark.parametrize("beyond", [0, 1, 10**9])
def test_a_number_beyond_the_end_is_an_index_error(dataset, beyond):
    data = bertdata.open_dataset(dataset)
    for number in (len(data) + beyond, -len(data) - 1 - beyond):
        with pytest.raises(IndexError, match=f"example {number}, expected {-len(data)} to {len(data) - 1}"):
            data[number]
    with pytest.raises(TypeError):
        data["1"]


def test_cache_and_open_shards_are_bounded(dataset, monkeypatch):
    monkeypatch.setattr(random_access, "_CACHE_BYTES", 1)
    monkeypatch.setattr(random_access, "_OPEN_SHARDS", 1)
    data = bertdata.open_dataset(dataset)
    wanted = list(data)
    order = list(range(0, len(data), 11))
    Random(2).shuffle(order)
    assert [data[number] for number in order] == [wanted[number] for number in order]
    assert data.__getitems__(order) == [wanted[number] for number in order]
    access = data._by_number._access
    assert access is not None
    assert len(access._cache) == 1
    assert len(access._open) == 1
    masked = data.masked(epoch=1)
    wanted = list(masked)
    assert [masked[number] for number in order] == [wanted[number] for number in order]


def test_masked_examples_by_number_are_those_in_order(dataset):
    data = bertdata.open_dataset(dataset).masked(epoch=3)
    wanted = list(data)
    order = list(range(len(data)))
    Random(3).shuffle(order)
    assert [data[number] for number in order] == [wanted[number] for number in order]


def test_a_dataset_that_alters_whole_shards_alone_is_read_in_order(training_set):
    class Reversed(OpenedDataset):
        def batches(self, shard: Any) -> Any:
            for batch in OpenedDataset.batches(self, shard):
                first = next(iter(batch.examples()))
                yield columns.convert_to_arrays(type(batch).of([first] * len(batch), wide=True))

    data = bertdata.open_dataset(training_set)
    fields = {name: getattr(data.opened, name) for name in OpenedDataset.__dataclass_fields__}
    access = random_access.RandomAccess(Reversed(**fields))
    assert list(access.read_batch([0, 5]).examples()) == [data[0], data[0]]


def test_a_shard_that_was_changed_is_refused_by_number_too(dataset, tmp_path):
    copy = Path(shutil.copytree(dataset, tmp_path / "copy"))
    file = Path(bertdata.open_dataset(copy).shards[1].path)
    damaged = bytearray(file.read_bytes())
    damaged[-1] ^= 1
    file.write_bytes(damaged)
    data = bertdata.open_dataset(copy)
    assert data[0] == bertdata.open_dataset(dataset)[0]
    with pytest.raises(ShardError, match=file.name):
        data[:]


def test_a_damaged_record_is_named_by_its_number_in_the_shard(training_set, tmp_path):
    shard = Path(bertdata.open_dataset(training_set).shards[0].path)
    content = bytearray(shard.read_bytes())
    start = 0
    for _ in range(20):
        start += int.from_bytes(content[start : start + 8], "little") + 16
    content[start + 40] ^= 1
    (tmp_path / shard.name).write_bytes(content)
    data = bertdata.open_dataset(tmp_path, unverified=True)
    assert data[3] == bertdata.open_dataset(training_set)[3]
    with pytest.raises(ShardError, match=f"{shard.name}: record 20: the checksum"):
        data[17]


def test_a_fork_reads_on_with_files_of_its_own(training_set):
    data = bertdata.open_dataset(training_set)
    wanted = list(data)
    assert data[1] == wanted[1]
    loader = DataLoader(data, shuffle=True, batch_size=16, num_workers=2, collate_fn=lambda rows: rows)
    assert data._by_number._access is not None
    found = [example for batch in loader for example in batch]
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))
    assert data[len(data) // 2] == wanted[len(data) // 2]
    assert data._by_number._access._process == os.getpid()


# --- views ----------------------------------------------------------------------------------------


def labels(batches: Any) -> list[list[int]]:
    return [np.asarray(row).tolist() for batch in batches for row in batch["labels"]]


def wanted_labels(data: Any, epoch: int) -> list[list[int]]:
    return labels(data.masked(epoch=epoch).numpy())


@pytest.mark.parametrize("map_style", [False, True])
@pytest.mark.parametrize("workers", [0, 1])
def test_set_epoch_draws_the_masks_of_that_epoch(training_set, map_style, workers):
    data = bertdata.open_dataset(training_set)
    view = data.masked(epoch=5).torch(map_style=map_style)
    kept = {"num_workers": workers, "persistent_workers": bool(workers)}
    loader: DataLoader[Any] = DataLoader(view, batch_size=16, collate_fn=data.collator(), **kept)  # type: ignore[arg-type]
    assert labels(loader) == wanted_labels(data, 5), "until set_epoch, the epoch that masked() was given"
    for epoch in (1, 0):
        view.set_epoch(epoch)
        assert labels(loader) == wanted_labels(data, epoch)
    assert wanted_labels(data, 0) != wanted_labels(data, 1)


def test_set_epoch_counts_fairseqs_epochs_from_0_as_training_loops_do(corpus, tmp_path):
    sizes: dict[str, Any] = {"max_seq_length": 64, "masks": False, "workers": 1}
    text = corpus[0].read_text(encoding="utf-8").splitlines()
    tokenizer = train_bpe(tmp_path / "tokenizer.json", text, 600)
    bertdata.create(corpus[:1], tmp_path / "set", tokenizer=tokenizer, objective="mlm", **sizes)
    data = bertdata.open_dataset(tmp_path / "set")
    view = data.masked(masking="fairseq").torch(map_style=True)
    for number in (0, 1):
        view.set_epoch(number)
        wanted = list(data.masked(masking="fairseq", epoch=number + 1))
        order = list(range(len(data)))
        Random(number).shuffle(order)
        assert [view[place] for place in order] == [wanted[place] for place in order]


def test_set_epoch_leaves_stored_masks_as_they_are(training_set):
    data = bertdata.open_dataset(training_set)
    view = data.torch(map_style=True)
    view.set_epoch(7)
    assert [view[number] for number in range(len(view))] == list(data)
    assert view[:3] == data[:3]
    with pytest.raises(SettingsError, match="rank and world go without map_style"):
        data.torch(rank=1, world=2, map_style=True)  # type: ignore[call-overload]


@pytest.mark.parametrize("workers", [0, 1])
def test_set_epoch_of_the_datasets_view_draws_its_masks(training_set, workers):
    data = bertdata.open_dataset(training_set)
    view = data.masked().datasets()
    assert isinstance(view, huggingface.IterableDataset)
    kept = {"num_workers": workers, "persistent_workers": bool(workers)}
    mapped = view.map(lambda row: row)
    of_rows: Any = {"batch_size": 64, "collate_fn": list, **kept}
    loaders = [DataLoader(one, **of_rows) for one in (view, mapped)]
    for epoch in (0, 2):
        view.set_epoch(epoch)
        for loader in loaders:
            found = [list(row["labels"]) for batch in loader for row in batch]
            assert sorted(found) == sorted(wanted_labels(data, epoch)), "datasets changes the shards' order"


def test_the_map_style_datasets_view_is_a_dataset_of_every_row(training_set, tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface.config, "HF_DATASETS_CACHE", tmp_path)
    data = bertdata.open_dataset(training_set)
    view = data.datasets(streaming=False)
    assert isinstance(view, huggingface.Dataset)
    assert list(view) == list(data.datasets())
    assert view.features == data.datasets().features
    first, again = data.masked(epoch=0), data.masked(epoch=1)
    assert first.datasets(streaming=False)["labels"] != again.datasets(streaming=False)["labels"]


def test_every_dataset_that_alters_stored_examples_alters_runs_of_them_too():
    for module in pkgutil.iter_modules(bertdata.dataset.__path__, "bertdata.dataset."):
        importlib.import_module(module.name)
    altering = {kind for kind in OpenedDataset.__subclasses__() if kind.stored is not OpenedDataset.stored}
    assert MaskedData in altering
    for kind in altering:
        assert kind.alter_batch is not OpenedDataset.alter_batch, kind


def test_a_batch_by_number_trains_with_shuffle(training_set):
    data = bertdata.open_dataset(training_set)
    torch.manual_seed(1)
    loader = DataLoader(data.torch(map_style=True), batch_size=8, shuffle=True, collate_fn=data.collator())
    rows = [row.tolist() for batch in loader for row in batch["input_ids"]]
    stored = [row.tolist() for batch in data.numpy() for row in batch["input_ids"]]
    assert rows != stored
    assert sorted(rows) == sorted(stored)


@pytest.mark.thorough
@pytest.mark.parametrize("map_style", [False, True])
def test_transformers_trainer_takes_new_masks_each_epoch(training_set, map_style, tmp_path):
    data = bertdata.open_dataset(training_set)
    seen: list[tuple[Any, ...]] = []
    collate = data.collator()

    def recorded(examples: Any) -> Any:
        seen.extend((tuple(one.ids), tuple(one.positions)) for one in examples)
        return collate(examples)

    small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 16}
    model = transformers.BertForPreTraining(transformers.BertConfig(vocab_size=4000, **small))
    steps = -(-len(data) // 64)
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path),
        max_steps=2 * steps,
        per_device_train_batch_size=64,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
    )
    transformers.Trainer(
        model=model,
        args=arguments,
        train_dataset=data.masked().torch(map_style=map_style),
        data_collator=recorded,
    ).train()
    for epoch in (0, 1):
        found = seen[epoch * len(data) : (epoch + 1) * len(data)]
        wanted = [(tuple(one.ids), tuple(one.positions)) for one in data.masked(epoch=epoch)]
        assert sorted(found) == sorted(wanted)
        assert (found == wanted) != map_style, "a map-style view is shuffled"


def test_a_mixture_has_every_view(corpus, tmp_path):
    for number in range(2):
        bertdata.create(corpus[number], tmp_path / f"{number}", vocab=VOCABULARY, workers=1, **SIZES)
    shares = {tmp_path / "0": 0.7, tmp_path / "1": 0.3}
    mixed = bertdata.open_dataset(shares, examples=500)
    for data in (mixed, mixed.masked()):
        wanted = list(data)
        order = list(range(-len(data), len(data)))
        Random(4).shuffle(order)
        assert len(wanted) == 500
        assert [data[number] for number in order] == [wanted[number] for number in order]
        assert data.__getitems__(order[:99]) == [wanted[number] for number in order[:99]]
        rows = [row for batch in data.numpy() for row in batch["input_ids"].tolist()]
        assert [list(row["input_ids"]) for row in data.datasets()] == rows
        assert [list(row["input_ids"]) for row in data.datasets(streaming=False)] == rows
    view = mixed.torch(map_style=True)
    view.set_epoch(1)
    assert view[:] == list(bertdata.open_dataset(shares, examples=500, epoch=1))
