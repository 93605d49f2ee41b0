"""open_dataset: examples, NumPy, torch, Hugging Face's names and datasets."""

import pickle
import shutil
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import datasets as huggingface
import numpy as np
import pytest
import torch
import transformers
from torch.utils.data import DataLoader

import bertdata
from bertdata.dataset.views.examples import split_numbers
from bertdata.errors import DatasetError, MissingExtraError, SettingsError, ShardError
from bertdata.shards import open_reader
from bertdata.steps import open_dataset as step
from tests.support.paths import ROOT
from tests.support.plain_objective import NAME as PLAIN

VOCABULARY = ROOT / "golden" / "vocab.txt"
NAMES = ["input_ids", "attention_mask", "token_type_ids", "labels", "next_sentence_label"]
LENGTH = 64


@pytest.fixture(scope="module", params=["tfrecord", "hdf5", "parquet"])
def dataset(request: Any, corpus: list[Path], tmp_path_factory: Any) -> Path:
    """Three shards of BERT's examples of 64 ids, in each container."""
    place = tmp_path_factory.mktemp(request.param)
    sizes = {"max_seq_length": LENGTH, "max_predictions_per_seq": 10, "dupe_factor": 1}
    bertdata.create(corpus, place / "set", vocab=VOCABULARY, format=request.param, workers=1, **sizes)
    return place / "set"


@pytest.fixture(scope="module")
def plain(corpus: list[Path], tmp_path_factory: Any) -> Path:
    """Three shards of an objective of ids alone."""
    place = tmp_path_factory.mktemp("plain") / "set"
    bertdata.create(corpus, place, vocab=VOCABULARY, objective=PLAIN, max_seq_length=32, workers=1)
    return place


def key(example: Any) -> tuple[Any, ...]:
    """An example as a value to count."""
    return tuple(example.ids), example.first_length, tuple(example.positions), example.next_label


def expected_row(example: Any, length: int = LENGTH) -> dict[str, Any]:
    """An example under Hugging Face's names, worked out one number at a time."""
    ids = example.ids
    labels = [-100] * length
    for position, label in zip(example.positions, example.labels, strict=True):
        labels[position] = label
    return {
        "input_ids": [*ids, *[0] * (length - len(ids))],
        "attention_mask": [int(place < len(ids)) for place in range(length)],
        "token_type_ids": [int(example.first_length <= place < len(ids)) for place in range(length)],
        "labels": labels,
        "next_sentence_label": example.next_label,
    }


# --- examples -------------------------------------------------------------------------------------


def test_iterating_gives_every_shards_examples_in_order(dataset):
    data = bertdata.open_dataset(dataset)
    found = list(data)
    by_shard = []
    for shard in data.shards:
        with open_reader(shard.path) as reader:
            assert len(reader) == shard.examples
            by_shard += list(reader)
    assert found == by_shard
    assert len(data) == len(found) > 300
    assert list(data) == found, "a second iteration begins anew"
    assert repr(data).startswith(
        f"<ExampleDataset {dataset}: 3 shards, {len(found)} examples, objective bert"
    )


def test_a_reader_that_is_asked_for_its_length_goes_on_where_it_was(dataset):
    (first, *_) = sorted(dataset.glob("part-*"))
    with open_reader(str(first)) as reader:
        found = [(len(reader), example) for example in reader]
    with open_reader(first) as reader:
        assert found == [(len(found), example) for example in reader]


def test_several_paths_and_patterns_are_one_dataset(dataset):
    first, *rest = sorted(dataset.glob("part-*"))
    assert list(bertdata.open_dataset([first, *rest])) == list(bertdata.open_dataset(str(dataset)))
    assert list(bertdata.open_dataset(f"{dataset}/part-*")) == list(bertdata.open_dataset(dataset))


def test_files_without_a_manifest_are_taken_only_unverified(dataset, tmp_path):
    for shard in dataset.glob("part-*"):
        (tmp_path / shard.name).write_bytes(shard.read_bytes())
    with pytest.raises(DatasetError, match="no manifest.json lists it"):
        bertdata.open_dataset(tmp_path)
    assert list(bertdata.open_dataset(tmp_path, unverified=True)) == list(bertdata.open_dataset(dataset))


def test_a_shard_that_was_changed_is_refused_when_it_is_read(dataset, tmp_path):
    copy = Path(shutil.copytree(dataset, tmp_path / "copy"))
    for file in copy.glob("part-00001*"):
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(data)
    opened = bertdata.open_dataset(copy)
    with pytest.raises(ShardError, match="part-00001"):
        list(opened)


# --- NumPy ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [1, 100, 10_000])
def test_padded_rows_hold_each_example_under_the_models_names(dataset, batch_size):
    data = bertdata.open_dataset(dataset)
    batches = list(data.numpy(batch_size=batch_size))
    assert all(list(batch) == NAMES for batch in batches)
    assert all(len(batch["input_ids"]) == batch_size for batch in batches[:-1])
    assert {values.dtype for batch in batches for values in batch.values()} == {np.dtype("int64")}
    rows = [
        {name: values[index].tolist() for name, values in batch.items()}
        for batch in batches
        for index in range(len(batch["input_ids"]))
    ]
    assert rows == [expected_row(example) for example in data]


def test_columns_hold_each_example_without_padding(dataset):
    data = bertdata.open_dataset(dataset)
    (columns,) = data.numpy(batch_size=len(data), padded=False)
    ends = [0, *columns["ends"].tolist()]
    rows = [columns["ids"][start:stop].tolist() for start, stop in pairwise(ends)]
    assert rows == [example.ids for example in data]
    assert columns["next_labels"].tolist() == [example.next_label for example in data]


def test_a_batch_of_no_rows_is_refused(dataset):
    with pytest.raises(SettingsError, match="batch_size is 0, expected 1 or more"):
        bertdata.open_dataset(dataset).numpy(batch_size=0)


# --- torch ----------------------------------------------------------------------------------------


def seen(loader: "DataLoader[Any]") -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.tolist()) for batch in loader for row in batch["input_ids"])


@pytest.mark.parametrize("workers", [0, 2])
def test_a_data_loader_sees_each_example_once_whatever_its_workers(dataset, workers):
    data = bertdata.open_dataset(dataset)
    assert len(data.shards) == 3
    loader = DataLoader(data.torch(), batch_size=16, collate_fn=data.collator(), num_workers=workers)
    wanted = Counter(tuple(expected_row(example)["input_ids"]) for example in data)
    assert seen(loader) == wanted
    assert seen(loader) == wanted, "a second epoch is whole too"


@pytest.mark.thorough
def test_a_data_loader_with_spawned_workers_sees_each_example_once(training_set):
    data = bertdata.open_dataset(training_set)
    assert len(data.shards) == 3
    spawned = {"num_workers": 2, "multiprocessing_context": "spawn"}
    loader = DataLoader(data.torch(), batch_size=16, collate_fn=data.collator(), **spawned)
    assert seen(loader) == Counter(tuple(expected_row(example)["input_ids"]) for example in data)


@pytest.mark.thorough
def test_an_objective_of_ones_own_reaches_spawned_workers(plain):
    data = bertdata.open_dataset(plain, objective=PLAIN)
    spawned = {"num_workers": 2, "multiprocessing_context": "spawn"}
    loader = DataLoader(data.torch(), batch_size=16, collate_fn=data.collator(), **spawned)
    batches = list(loader)
    assert {tuple(batch) for batch in batches} == {("input_ids", "attention_mask")}
    assert sum(len(batch["input_ids"]) for batch in batches) == len(data)


@pytest.mark.parametrize(("examples", "parts"), [(0, 1), (1, 3), (10, 3), (10, 10), (7, 16)])
def test_shares_are_even_and_hold_every_number_once(examples, parts):
    shares = [split_numbers(examples, part, parts) for part in range(parts)]
    assert [number for share in shares for number in share] == list(range(examples))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize(("world", "workers"), [(2, 0), (3, 2)])
def test_the_ranks_share_the_examples(training_set, world, workers):
    data = bertdata.open_dataset(training_set)
    sizes: list[int] = []
    together: Counter[tuple[Any, ...]] = Counter()
    for rank in range(world):
        ours = pickle.loads(pickle.dumps(data.torch(rank=rank, world=world)))
        found = seen(DataLoader(ours, batch_size=16, collate_fn=data.collator(), num_workers=workers))
        sizes.append(found.total())
        together += found
    assert together == Counter(tuple(expected_row(example)["input_ids"]) for example in data)
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(("rank", "world"), [(2, 2), (-1, 2), (0, 0)])
def test_a_rank_outside_its_world_is_refused(rank, world, dataset):
    with pytest.raises(SettingsError, match=f"rank is {rank} of world {world}"):
        bertdata.open_dataset(dataset).torch(rank=rank, world=world)


def test_the_collator_pads_examples_under_the_models_names(dataset):
    data = bertdata.open_dataset(dataset)
    examples = list(data)[:7]
    batch = pickle.loads(pickle.dumps(data.collator()))(examples)
    assert list(batch) == NAMES
    assert all(values.dtype == torch.int64 for values in batch.values())
    for index, example in enumerate(examples):
        assert {name: values[index].tolist() for name, values in batch.items()} == expected_row(example)


def test_transformers_takes_a_batch_and_its_loss_is_that_of_the_examples(dataset):
    data = bertdata.open_dataset(dataset)
    examples = list(data)[:8]
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=4000, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64
    )
    model = transformers.BertForPreTraining(config).eval()
    with torch.no_grad():
        found = model(**data.collator()(examples))
        masked, pairs = [], []
        for example in examples:
            segments = [int(place >= example.first_length) for place in range(len(example.ids))]
            one = model(input_ids=torch.tensor([example.ids]), token_type_ids=torch.tensor([segments]))
            words = one.prediction_logits[0].log_softmax(-1)
            labelled = zip(example.positions, example.labels, strict=True)
            masked += [-words[position, label] for position, label in labelled]
            pairs.append(-one.seq_relationship_logits[0].log_softmax(-1)[example.next_label])
    wanted = torch.stack(masked).mean() + torch.stack(pairs).mean()
    assert float(found.loss) == pytest.approx(float(wanted), rel=1e-5)


# --- Hugging Face's datasets ----------------------------------------------------------------------


def test_the_datasets_view_streams_every_row_with_its_features(dataset):
    data = bertdata.open_dataset(dataset)
    view = data.datasets()
    assert isinstance(view, huggingface.IterableDataset)
    assert list(view.features) == NAMES
    assert view.num_shards == 3
    assert list(view) == [expected_row(example) for example in data]


def test_workers_share_the_datasets_view(training_set):
    data = bertdata.open_dataset(training_set)
    view = data.datasets().with_format("torch")
    loader = DataLoader(view, batch_size=16, num_workers=2)
    assert seen(loader) == Counter(tuple(expected_row(example)["input_ids"]) for example in data)


def test_an_objective_without_names_of_its_own_has_ids_and_their_mask(plain):
    data = bertdata.open_dataset(plain, objective=PLAIN)
    rows = list(data.datasets())
    assert [row.keys() for row in rows] == [{"input_ids", "attention_mask"}] * len(data)
    for row, example in zip(rows, data, strict=True):
        rest = 32 - len(example.ids)
        assert row["input_ids"] == example.ids + [0] * rest
        assert row["attention_mask"] == [1] * len(example.ids) + [0] * rest


# --- what is missing ------------------------------------------------------------------------------

WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
import bertdata
data = bertdata.open_dataset({path!r})
try:
    {call}
except bertdata.errors.MissingExtraError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("missing", "call", "words"),
    [
        (("torch",), "data.torch()", ".torch() needs the package torch"),
        (("torch",), "data.collator()", ".collator() needs the package torch"),
        (("datasets",), "data.datasets()", ".datasets() needs the package datasets"),
        (("torch", "datasets"), "print(len(list(data)))", "\n"),
    ],
)
def test_a_view_without_its_package_names_the_extra(missing, call, words, training_set):
    code = WITHOUT.format(missing=missing, path=str(training_set), call=call)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert words in done.stdout
    assert done.stdout.count("pip install") == (words != "\n")


def test_reading_without_numpy_names_the_extra(training_set, monkeypatch):
    real = step.find_spec
    monkeypatch.setattr(step, "find_spec", lambda name: None if name == "numpy" else real(name))
    with pytest.raises(MissingExtraError, match="needs the package numpy: pip install"):
        bertdata.open_dataset(training_set)


def test_opening_and_reading_imports_neither_torch_nor_datasets(training_set):
    code = f"""
import sys, bertdata
data = bertdata.open_dataset({str(training_set)!r})
list(data), list(data.numpy())
print([name for name in ("torch", "datasets", "transformers") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"


# Masks drawn at load


def test_masks_are_drawn_anew_for_an_epoch_and_seed(dataset):
    data = bertdata.open_dataset(dataset)
    stored, first, again = list(data), list(data.masked()), list(data.masked(epoch=0, seed=42))
    assert first == again
    for other in (stored, list(data.masked(epoch=1)), list(data.masked(seed=1))):
        assert sum(a == b for a, b in zip(first, other, strict=True)) < len(data) / 20

    def text(example: Any) -> list[int]:
        labels = dict(zip(example.positions, example.labels, strict=True))
        return [labels.get(place, token) for place, token in enumerate(example.ids)]

    assert [text(one) for one in first] == [text(one) for one in stored]
    assert [len(one.positions) for one in first] == [len(one.positions) for one in stored]


def test_masked_examples_have_every_view(dataset):
    data = bertdata.open_dataset(dataset).masked(masked_lm_prob=0.3, max_predictions_per_seq=30)
    assert data.layout.max_predictions_per_seq == 30
    expected = sorted(one.ids for one in data)
    assert sorted(one.ids for one in pickle.loads(pickle.dumps(data))) == expected
    rows = np.concatenate([batch["labels"] for batch in data.numpy()])
    assert 0.2 < (rows != -100).mean() < 0.31
    loader = DataLoader(data.torch(), batch_size=8, collate_fn=data.collator(), num_workers=2)
    found = np.concatenate([batch["labels"].numpy() for batch in loader])
    assert sorted(map(bytes, found)) == sorted(map(bytes, rows))


def test_masks_that_cannot_be_drawn_are_refused(dataset, tmp_path):
    data = bertdata.open_dataset(dataset)
    with pytest.raises(SettingsError, match="their sum is 1.2, expected 1"):
        data.masked(mask_share=1)
    shard = Path(data.shards[0].path)
    shutil.copy(shard, tmp_path)
    alone = bertdata.open_dataset(tmp_path, unverified=True)
    with pytest.raises(SettingsError, match="masks need its vocabulary, which is not beside the data"):
        alone.masked()
    assert len(list(alone.masked(vocab=VOCABULARY))) == len(alone)
