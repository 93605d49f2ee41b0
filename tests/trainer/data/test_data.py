"""Training data: opened and checked, divided among workers, and resumed, without loss or repetition."""

import dataclasses
import json
import lzma
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import fsspec
import h5py
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bertdata.cli.main import main
from bertdata.dataset.mixture.weights import split_paths
from bertdata.dataset.reader import OpenedDataset, open_dataset
from bertdata.errors import DatasetError, ManifestError, MissingInputError, SettingsError, ShardError
from bertdata.examples import columns
from bertdata.io.manifest_file import dump_json
from bertdata.records import ShardLayout
from bertdata.shards.example_proto import decode_example
from bertdata.shards.framing import read_payloads
from bertdata.shards.rows import RecordCheck, check_batch
from tests.support.padded_examples import PaddedExamples, PaddedForm
from tests.support.plain_objective import NAME as PLAIN
from tests.support.sample_sets import create, create_mixed
from trainer.config.sections.data import DataSection
from trainer.config.settings import Config
from trainer.data.evaluation import load_evaluation_batches
from trainer.data.examples import Rows
from trainer.data.generated import GeneratedData, generate_data
from trainer.data.loader import Loader, Prefetcher
from trainer.data.opening import describe_phase, open_for_training
from trainer.data.order import Order, Position, draw_numbers
from trainer.tasks.choice import find_data_task
from trainer.tasks.pretraining import Pretraining

CONTAINERS = ("tfrecord", "hdf5", "parquet")
LAYOUT = ShardLayout(max_seq_length=12, max_predictions_per_seq=3)


@pytest.fixture(scope="module")
def datasets(tmp_path_factory, corpus, small_vocabulary_file) -> dict[str, Path]:
    """The sample corpus's three shards in each container."""
    made = {container: tmp_path_factory.mktemp(container) / "set" for container in CONTAINERS}
    for container, directory in made.items():
        create(corpus, small_vocabulary_file, directory, container)
    return made


@pytest.fixture
def dataset(tmp_path, corpus, small_vocabulary_file) -> Path:
    """A dataset of its own, to be damaged."""
    create(corpus, small_vocabulary_file, tmp_path / "set")
    return tmp_path / "set"


def small(files: int = 3, examples: int = 7) -> OpenedDataset:
    """Generated examples, all different, in files of decreasing sizes."""
    data = generate_data(LAYOUT, vocabulary_size=60000, files=files, examples=examples)
    shards = (dataclasses.replace(shard, examples=examples - i) for i, shard in enumerate(data.shards))
    return dataclasses.replace(data, shards=tuple(shards))


def updates(data: OpenedDataset, count: int, **settings: int) -> list[list[PaddedExamples]]:
    """The updates of all workers: the micro-batches of each, in their order."""
    workers = settings.pop("workers", 1)
    loaders = [
        Loader(
            Rows(data),
            form=PaddedForm(),
            workers=workers,
            rank=rank,
            **{"batch_size": 2, "open_files": 2, **settings},
        )
        for rank in range(workers)
    ]
    found = []
    for _ in range(count):
        rounds = zip(*(next(loader).batches for loader in loaders), strict=True)
        found.append([batch for row in rounds for batch in row])
    for loader in loaders:
        loader.close()
    return found


def rows(batch: PaddedExamples) -> list[bytes]:
    """The bytes of each example."""
    tensors = [getattr(batch, field.name) for field in dataclasses.fields(PaddedExamples)]
    tensors = [tensor for tensor in tensors if isinstance(tensor, torch.Tensor)]
    return [b"".join(tensor[i].numpy().tobytes() for tensor in tensors) for i in range(len(batch))]


def all_rows(found: list[list[PaddedExamples]]) -> list[bytes]:
    """The examples as one update after another consumes them, micro-batch by micro-batch."""
    return [row for update in found for batch in update for row in rows(batch)]


def filled(batch: PaddedExamples) -> PaddedExamples:
    """The batch without the missing examples that fill it."""
    return batch.slice_rows(0, int((batch.next_sentence_labels >= 0).sum()))


def whole(data: OpenedDataset) -> Counter:
    batches = load_evaluation_batches(data, form=PaddedForm(), batch_size=5)
    return Counter(row for batch in batches for row in rows(filled(batch)))


# --- order


def test_numbers_are_the_same_on_every_machine_and_for_ever():
    assert draw_numbers(3, 1, 0, "part").tolist() == [
        10283390505462527867,
        1907184153411204655,
        10620432835093154731,
    ]


def test_queues_give_one_example_in_turn_and_the_longer_ones_continue():
    files = [("a", 5), ("b", 2), ("none", 0), ("c", 4)]
    order = Order(files, seed=7, open_files=2)
    seen = {}
    for file, own, targets, epoch, _ in order.find(Position(), np.arange(11)):
        assert epoch == 0
        seen |= {int(place): (file, int(row)) for place, row in zip(targets, own, strict=True)}
    assert sorted(seen.values()) == sorted((f, row) for f, (_, n) in enumerate(files) for row in range(n))
    dealt: list[list[int]] = [[], []]
    for file in dict.fromkeys(seen[place][0] for place in range(11)):
        dealt[min((0, 1), key=lambda queue: sum(files[f][1] for f in dealt[queue]))].append(file)
    turns = [[f for f in queue for _ in range(files[f][1])] for queue in dealt]
    expected = [queue[turn] for turn in range(11) for queue in turns if turn < len(queue)]
    assert [seen[place][0] for place in range(11)] == expected


@pytest.mark.parametrize(("workers", "accumulation"), [(2, 2), (4, 1)])
def test_order_does_not_depend_on_the_number_of_workers(workers, accumulation):
    data = small()  # 18 examples: 7 updates of 8 cross epochs in their middle
    alone = updates(data, 7, workers=1, accumulation=4, seed=3)
    shared = updates(data, 7, workers=workers, accumulation=accumulation, seed=3)
    assert [[rows(batch) for batch in update] for update in shared] == [
        [rows(batch) for batch in update] for update in alone
    ]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_each_epoch_of_all_workers_is_every_example_once(workers):
    data = small()
    found = updates(data, 18, workers=workers, batch_size=1, seed=3)
    # micro-batches deal the examples of an update in turn, so they are in the order of the dataset
    examples = all_rows(found)
    for epoch in range(workers):
        assert Counter(examples[18 * epoch : 18 * (epoch + 1)]) == whole(data)


def test_order_changes_with_seed_and_epoch_only():
    data = small()
    first, again, other = (all_rows(updates(data, 18, seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert first[:18] != first[18:]
    assert Counter(first[:18]) == Counter(first[18:]) == Counter(other[:18])


@settings(max_examples=15)
@given(
    workers=st.tuples(*[st.integers(1, 3)] * 2),
    accumulation=st.tuples(*[st.integers(1, 2)] * 2),
    done=st.integers(0, 4),
    files=st.integers(1, 4),
    open_files=st.integers(1, 4),
)
def test_resuming_with_any_number_of_workers_repeats_and_misses_nothing(
    workers, accumulation, done, files, open_files
):
    data = small(files)
    position, examples = Position(), []
    for part in (0, 1):
        step = workers[part] * accumulation[part]
        count = done if part == 0 else -(-2 * data.examples // step)
        fields = {"workers": workers[part], "accumulation": accumulation[part], "batch_size": 1}
        examples += all_rows(updates(data, count, open_files=open_files, position=position, **fields))
        position = Order([(s.name, s.examples) for s in data.shards], seed=0, open_files=open_files).advance(
            position, count * step
        )
    total = data.examples
    assert Counter(examples[:total]) == Counter(examples[total : 2 * total]) == whole(data)


def test_the_position_after_an_update_is_where_the_next_loader_goes_on():
    data = small()
    loader = Loader(Rows(data), form=PaddedForm(), batch_size=5, accumulation=2, open_files=2)
    seen = [next(loader) for _ in range(4)]
    loader.close()
    assert [update.position[:2] for update in seen] == [(0, 10), (1, 2), (1, 12), (2, 4)]
    resumed = Loader(
        Rows(data), form=PaddedForm(), batch_size=5, accumulation=2, open_files=2, position=seen[1].position
    )
    assert [rows(b) for b in next(resumed).batches] == [rows(b) for b in seen[2].batches]
    resumed.close()


def test_a_position_outside_of_the_dataset_is_refused():
    with pytest.raises(DatasetError, match=r"holds 18 examples, no position \(0, 18\)"):
        Loader(Rows(small()), form=PaddedForm(), batch_size=1, position=(0, 18))


class Recorder(GeneratedData):
    """Generated data that records the files read."""

    read: ClassVar[list[str]] = []

    @classmethod
    def of(cls, data: OpenedDataset) -> "Recorder":
        cls.read.clear()
        return cls(**{field.name: getattr(data, field.name) for field in dataclasses.fields(data)})

    def batches(self, shard):
        self.read.append(shard.name)
        return super().batches(shard)


def test_workers_that_divide_the_open_files_read_only_their_own_files():
    data = Recorder.of(generate_data(LAYOUT, vocabulary_size=100, files=4, examples=4096))
    loader = Loader(Rows(data), form=PaddedForm(), batch_size=16, workers=2, rank=0, open_files=4)
    for _ in range(20):
        next(loader)
    loader.close()
    assert len(Recorder.read) == len(set(Recorder.read)) == 2


def test_files_are_decoded_once_an_epoch_and_only_when_their_turn_is_near():
    data = Recorder.of(generate_data(LAYOUT, vocabulary_size=100, files=6, examples=4096))
    loader = Loader(Rows(data), form=PaddedForm(), batch_size=64, open_files=2)
    for _ in range(50):  # 3200 examples of the first two files
        assert len(next(loader).batches[0]) == 64
    assert len(Recorder.read) == 2
    for _ in range(250):
        next(loader)
    assert len(loader._decoder._pieces) <= 4  # a file and its successor in each queue
    loader.close()
    assert len(Recorder.read) == len(set(Recorder.read)) == 6


def test_fewer_files_than_workers_are_shared_with_a_warning():
    data, said = small(files=1, examples=8), []
    for rank in (0, 1):
        Loader(Rows(data), form=PaddedForm(), batch_size=1, workers=2, rank=rank, warn=said.append).close()
    assert said == ["generated data: 1 files for 2 workers, so each file is read by several"]
    assert Counter(all_rows(updates(data, 4, workers=2, batch_size=1))) == whole(data)


# --- contents


@pytest.mark.parametrize("container", CONTAINERS)
def test_tensors_are_the_padded_features_of_the_hdf5_shards(datasets, container):
    data = open_dataset(str(datasets[container]))
    batches = list(map(filled, load_evaluation_batches(data, form=PaddedForm(), batch_size=100)))
    names = ("input_ids", "token_type_ids", "attention_mask", "masked_lm_positions", "masked_lm_ids",
             "next_sentence_labels")  # fmt: skip
    written = ("input_ids", "segment_ids", "input_mask", "masked_lm_positions", "masked_lm_ids",
               "next_sentence_labels")  # fmt: skip
    for ours, theirs in zip(names, written, strict=True):
        found = torch.cat([getattr(batch, ours) for batch in batches])
        assert found.dtype == torch.int32
        np.testing.assert_array_equal(found.numpy(), hdf5_rows(datasets["hdf5"], theirs), err_msg=ours)
    weights = torch.cat([batch.masked_lm_weights for batch in batches]).numpy()
    assert weights.dtype == np.float32
    np.testing.assert_array_equal(weights, hdf5_rows(datasets["hdf5"], "masked_lm_positions") > 0)


def hdf5_rows(directory: Path, name: str) -> np.ndarray:
    arrays = []
    for path in sorted(directory.glob("*.hdf5")):
        with h5py.File(path) as file:
            arrays.append(file[name][()])
    return np.concatenate(arrays)


def test_shuffled_batches_hold_the_same_examples_as_the_files(datasets):
    data = open_dataset(str(datasets["parquet"]))
    loader = Loader(Rows(data), form=PaddedForm(), batch_size=data.examples)
    assert Counter(rows(next(loader).batches[0])) == whole(data)
    loader.close()


def test_a_remote_dataset_gives_the_same_batches_as_a_local_one(datasets):
    files = fsspec.filesystem("memory")
    files.put(f"{datasets['hdf5']}/", "/trainer-set/", recursive=True)
    remote, local = open_dataset("memory://trainer-set"), open_dataset(str(datasets["hdf5"]))
    assert remote.digest == local.digest
    assert all_rows(updates(remote, 5)) == all_rows(updates(local, 5))
    files.rm("/trainer-set", recursive=True)


def test_several_datasets_and_chosen_shards_are_opened_as_one(datasets):
    first, rest = (f"{datasets['tfrecord']}/part-0000{i}*" for i in ("0", "[12]"))
    all_of_it = open_dataset([first, rest])
    assert all_of_it.digest == open_dataset(str(datasets["tfrecord"] / "manifest.json")).digest
    assert open_dataset(first).examples + open_dataset(rest).examples == all_of_it.examples


@pytest.mark.parametrize(("workers", "limit"), [(1, None), (2, 12), (2, 9), (5, 3)])
def test_evaluation_takes_every_example_once_over_the_workers(workers, limit):
    data, real, sizes, counts = small(), Counter(), set(), set()
    for rank in range(workers):
        share = {"workers": workers, "rank": rank, "limit": limit}
        batches = list(load_evaluation_batches(data, form=PaddedForm(), batch_size=4, **share))
        counts.add(len(batches))
        for batch in batches:
            used = int((batch.next_sentence_labels >= 0).sum())
            assert not batch.masked_lm_weights[used:].any()
            assert not batch.attention_mask[used:].any()
            sizes.add(len(batch))
            real.update(rows(batch.slice_rows(0, used)))
    expected = list(whole(data))[: limit or data.examples]
    assert real == Counter(expected)
    assert sizes == {4}
    assert len(counts) == 1


def test_generated_examples_are_valid_and_come_from_the_seed():
    layout = ShardLayout(max_seq_length=128, max_predictions_per_seq=20)
    data, other = (generate_data(layout, vocabulary_size=50, seed=seed, examples=100) for seed in (0, 1))
    for shard in data.shards:
        for batch in data.batches(shard):
            check_batch(batch, layout, RecordCheck(name=shard.name, first=0), lowest={"positions": 1})
            assert columns.compute_lengths(batch.mask_ends).tolist() == [20] * 100
            assert max(batch.ids.max(), batch.labels.max()) < 50
    assert whole(data) != whole(other)


# --- files of other tools


def unpacked(kit: Path, name: str, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(lzma.decompress((kit / "outputs" / f"{name}.xz").read_bytes()))
    return target


def test_nvidias_hdf5_files_are_read_unverified(kit):
    path = next((kit / "outputs").glob("nvidia__*.hdf5"))
    with pytest.raises(DatasetError, match=r"no manifest.json lists it.*unverified takes files as they are"):
        open_dataset(str(path))
    data = open_for_training(
        str(path), DataSection(unverified=True, max_seq_length=128), vocabulary_size=30522
    )
    with h5py.File(path) as file:
        batch = next(load_evaluation_batches(data, form=PaddedForm(), batch_size=50))
        np.testing.assert_array_equal(batch.input_ids, file["input_ids"][:50])
        np.testing.assert_array_equal(batch.masked_lm_ids, file["masked_lm_ids"][:50])
        assert data.examples == len(file["input_ids"])


def test_mlperfs_files_without_ending_are_read_unverified(kit, tmp_path):
    name = "mlperf__eval.txt__s128__p20__d5__seed12345.tfrecord"
    for number in (0, 1):
        unpacked(kit, name, tmp_path / f"part-0000{number}-of-00500")
    data = open_for_training(str(tmp_path), DataSection(unverified=True, max_predictions_per_seq=20))
    assert data.examples == 2 * json.loads((kit / "expected.json").read_text())[name]["examples"]
    assert [shard.name for shard in data.shards] == ["part-00000-of-00500", "part-00001-of-00500"]
    with open(tmp_path / "part-00000-of-00500", "rb") as file:
        features = decode_example(next(read_payloads(file, "")))
    batch = next(load_evaluation_batches(data, form=PaddedForm(), batch_size=1))
    assert batch.input_ids[0].tolist() == features["input_ids"]
    assert batch.masked_lm_weights[0].tolist() == list(features["masked_lm_weights"])


def test_graphcores_remasked_examples_come_in_reading_order(kit, tmp_path):
    name = "graphcore__eval.txt__s128__p20__d5__seed1984__remask.tfrecord"
    path = unpacked(kit, name, tmp_path / name)
    batch = next(
        load_evaluation_batches(open_dataset(str(path), unverified=True), form=PaddedForm(), batch_size=40)
    )
    with open(path, "rb") as file:
        for row, payload in zip(range(40), read_payloads(file, name), strict=False):
            features = decode_example(payload)
            at = np.array(features["input_position"])
            used = (np.array(features["input_ids"]) != 0) & (at < 128)
            ids = np.array(features["input_ids"])[used]
            np.testing.assert_array_equal(batch.input_ids[row][at[used]], ids)
            assert batch.input_ids[row].count_nonzero() == len(ids)
            assert (
                batch.masked_lm_positions[row].tolist()[: len(features["masked_lm_positions"])]
                == (features["masked_lm_positions"])
            )
            assert batch.masked_lm_ids[row].tolist() == features["masked_lm_ids"]


# --- bad input


def test_a_missing_path_or_manifest_is_refused(dataset, tmp_path):
    with pytest.raises(MissingInputError, match="nothing: no such file"):
        open_dataset(str(tmp_path / "nothing"))
    with pytest.raises(DatasetError, match=rf"holds no manifest.json.*name one of its datasets: {dataset}"):
        open_dataset(str(tmp_path))
    (dataset / "manifest.json").unlink()
    with pytest.raises(DatasetError, match=r"no manifest.json lists it.*unverified"):
        open_dataset(str(dataset))
    assert open_dataset(str(dataset), unverified=True).examples > 0


def test_an_edited_manifest_is_refused(dataset):
    path = dataset / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["settings"]["objective"]["random_seed"] += 1
    path.write_bytes(dump_json(manifest))
    with pytest.raises(ManifestError, match="manifest.json: was edited"):
        open_dataset(str(dataset))
    path.write_text("{}")
    with pytest.raises(ManifestError, match="required property"):
        open_dataset(str(dataset))


def test_cut_and_missing_shards_are_refused_at_the_start(dataset):
    first, second, _ = sorted(dataset.glob("part-*"))
    data = first.read_bytes()
    first.write_bytes(data[:-7])
    wanted = rf"{first}: found {len(data) - 7} bytes, expected {len(data)} bytes$"
    with pytest.raises(ShardError, match=wanted):
        open_dataset(str(dataset))
    second.unlink()
    with pytest.raises(ShardError, match=r"part-00000.*found.*\(and 1 more files at fault\)"):
        open_dataset(str(dataset))
    first.write_bytes(data)
    with pytest.raises(ShardError, match=r"part-00001.*: is missing, manifest.json lists it with \d+ bytes"):
        open_dataset(str(dataset))


def test_a_changed_shard_is_refused_when_it_is_read(dataset):
    first = min(dataset.glob("part-*"))
    data = bytearray(first.read_bytes())
    data[100] ^= 1
    first.write_bytes(data)
    with pytest.raises(ShardError, match=rf"{first}: found md5 \w+, expected \w+"):
        list(Loader(Rows(open_dataset(str(dataset))), form=PaddedForm(), batch_size=1))
    with pytest.raises(ShardError, match="part-00000.*record .*checksum"):
        list(
            load_evaluation_batches(
                open_dataset(str(dataset), unverified=True), form=PaddedForm(), batch_size=100
            )
        )


def test_a_shard_that_is_cut_later_is_refused_unverified(dataset):
    opened = open_dataset(str(dataset), unverified=True)
    last = max(dataset.glob("part-*"))
    last.write_bytes(last.read_bytes()[:-5])
    with pytest.raises(ShardError, match="part-00002.*truncated"):
        list(load_evaluation_batches(opened, form=PaddedForm(), batch_size=100))
    with pytest.raises(ShardError, match="part-00002.*truncated"):
        open_dataset(str(dataset), unverified=True)


@pytest.mark.parametrize(
    ("keys", "wanted", "message"),
    [
        ({"max_seq_length": 128}, {}, "was made with max_seq_length 64, the configuration says 128"),
        (
            {"max_predictions_per_seq": 20},
            {},
            "made with max_predictions_per_seq 10, the configuration says 20",
        ),
        ({}, {"longest": 32}, "sequences of 64 ids, the model has max_position_embeddings 32"),
        ({}, {"vocabulary_size": 1999}, "a vocabulary of 2000 tokens, the model has vocab_size 1999"),
        ({}, {"vocabulary_size": 30522}, "a vocabulary of 2000 tokens, the model has vocab_size 30522"),
    ],
)
def test_a_dataset_that_does_not_suit_the_model_is_refused(datasets, keys, wanted, message):
    with pytest.raises(SettingsError, match=message):
        open_for_training(str(datasets["hdf5"]), DataSection(**keys), **wanted)
    suits = DataSection(max_seq_length=64, max_predictions_per_seq=10)
    data = open_for_training(str(datasets["hdf5"]), suits, longest=512, vocabulary_size=2048)
    assert data.vocabulary_size == 2048
    assert open_dataset(str(datasets["hdf5"])).vocabulary_size == 2000


def test_a_dataset_of_another_objective_is_refused(tmp_path, corpus, small_vocabulary_file):
    words = ["create", str(corpus[0]), "--output", str(tmp_path / "set"), "--objective", PLAIN]
    assert main([*words, "--vocab", str(small_vocabulary_file), "--max-seq-length=48", "--workers=1"]) == 0
    data = open_for_training(str(tmp_path / "set"), DataSection())
    with pytest.raises(
        SettingsError, match=r"set: has the objective .*, which no task of the trainer learns"
    ):
        find_data_task([data])
    with pytest.raises(SettingsError, match=r"set: has the objective .*, learned by the task .*; here it is"):
        open_for_training(str(tmp_path / "set"), DataSection(), task="pretraining")


def test_ids_beyond_the_models_vocabulary_are_refused_unverified(datasets):
    data = open_for_training(str(datasets["hdf5"]), DataSection(unverified=True), vocabulary_size=1000)
    with pytest.raises(ShardError, match=r"part-00000.*record \d+: id \d+, expected less than 1000"):
        list(load_evaluation_batches(data, form=PaddedForm(), batch_size=10))


def test_datasets_of_different_lengths_are_refused(datasets, tmp_path, corpus, small_vocabulary_file):
    words = ["create", str(corpus[0]), "--output", str(tmp_path / "s"), "--vocab", str(small_vocabulary_file)]
    assert main([*words, "--max-seq-length=32", "--max-predictions-per-seq=10", "--dupe-factor=1"]) == 0
    for unverified in (False, True):
        with pytest.raises(ShardError, match="max_seq_length is (32|64), expected (64|32)"):
            open_dataset([str(datasets["tfrecord"]), str(tmp_path / "s")], unverified=unverified)


def test_datasets_of_different_vocabularies_are_refused(datasets, tmp_path, corpus, small_vocabulary_file):
    tokens = small_vocabulary_file.read_text().splitlines()
    other = tmp_path / "other.txt"
    other.write_text("".join(f"{token}\n" for token in [*tokens[:-2], *tokens[:-3:-1]]))
    create(corpus[:1], other, tmp_path / "other")
    with pytest.raises(DatasetError, match=r"other: was made with vocabulary \w+, expected \w+"):
        open_dataset([str(datasets["hdf5"]), str(tmp_path / "other")])


def test_empty_datasets_and_strange_directories_are_refused(dataset, tmp_path):
    manifest = json.loads((dataset / "manifest.json").read_text())
    manifest["shards"], manifest["totals"] = [], dict.fromkeys(manifest["totals"], 0)
    del manifest["totals"]["lost_tokens"]  # no shard says how many
    (dataset / "manifest.json").write_bytes(dump_json(manifest))
    (dataset / "MD5SUMS").unlink()
    with pytest.raises(DatasetError, match="set: holds no examples"):
        open_dataset(str(dataset))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "read.me").write_text("hello")
    with pytest.raises(
        DatasetError, match="holds no dataset: neither .* nor any file that is named as a shard"
    ):
        open_dataset(str(tmp_path / "notes"), unverified=True)
    for word in ("training", "test"):
        (tmp_path / f"wiki_{word}_0.hdf5").touch()
    (tmp_path / "set").rename(tmp_path.parent / f"{tmp_path.name}-set")
    with pytest.raises(DatasetError, match=r"training and test files; give a pattern"):
        open_dataset(str(tmp_path), unverified=True)


@pytest.fixture
def mixed(corpus, small_vocabulary_file, tmp_path) -> Path:
    return create_mixed(corpus, small_vocabulary_file, tmp_path)


@pytest.mark.parametrize("has_manifest", [True, False], ids=["manifest", "no manifest"])
def test_training_takes_the_training_files_of_a_folder_of_both_and_says_so(mixed, has_manifest):
    if not has_manifest:
        (mixed / "manifest.json").unlink()
        shutil.rmtree(mixed / "lengths")
    config = Config.of(train_data=str(mixed), unverified=not has_manifest)
    data = Pretraining().open(config, str(mixed))
    assert [shard.name for shard in data.shards] == ["wiki_training_0.txt.hdf5", "wiki_training_1.txt.hdf5"]
    held_out = Pretraining().open(config, str(mixed), held_out=True)
    assert [shard.name for shard in held_out.shards] == ["wiki_test_0.txt.hdf5"]
    line = describe_phase(config, data, held_out)
    assert f"{data.examples} examples of 64 ids, 10 masked, without 1 file of test text; evaluates on" in line
    assert line.endswith(f": {held_out.examples} examples, without 2 files of training text")


def test_a_shard_that_the_manifest_does_not_list_is_refused(dataset):
    extra = dataset / "part-9.tfrecord"
    extra.write_bytes(min(dataset.glob("part-*")).read_bytes())
    with pytest.raises(DatasetError, match="part-9.tfrecord: no manifest.json lists it"):
        open_dataset(str(extra))


# --- the thread


def test_errors_come_in_their_turn_and_closing_ends_the_thread():
    def items() -> Iterator[int]:
        yield 1
        raise ShardError("broken")

    ahead = Prefetcher(items(), 2)
    assert next(ahead) == 1
    with pytest.raises(ShardError, match="broken"):
        next(ahead)
    before = threading.active_count()
    loader = Loader(Rows(small()), form=PaddedForm(), batch_size=1)
    next(loader)
    loader.close()
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert threading.active_count() <= before
    with pytest.raises(StopIteration):
        next(loader)


def test_batches_are_prepared_in_the_thread():
    threads = []

    def prepare(batch: PaddedExamples) -> PaddedExamples:
        threads.append(threading.current_thread())
        return batch.map(torch.Tensor.long)

    loader = Loader(Rows(small()), form=PaddedForm(), batch_size=2, prepare=prepare)
    assert next(loader).batches[0].input_ids.dtype == torch.int64
    loader.close()
    assert threading.current_thread() not in threads


def test_waiting_is_counted_from_the_second_item_on():
    def slow() -> Iterator[int]:
        for number in range(3):
            time.sleep(0.1)
            yield number

    ahead = Prefetcher(slow(), 1)
    next(ahead)
    assert ahead.waited == 0
    assert list(ahead) == [1, 2]
    assert ahead.waited >= 0.1


# Several datasets


@pytest.mark.parametrize("paths", ["a,b", "a+b", "a, b"])
def test_datasets_are_separated_by_commas_or_plus(paths):
    assert split_paths(paths) == ["a", "b"]


def test_a_plus_in_the_name_of_an_existing_directory_separates_nothing(tmp_path):
    place = tmp_path / "c++"
    place.mkdir()
    assert split_paths(str(place)) == [str(place)]
    assert split_paths(f"{place},{tmp_path}/x+{tmp_path}/y") == [str(place), f"{tmp_path}/x", f"{tmp_path}/y"]


def test_a_phase_is_described_by_its_datasets_their_examples_and_lengths(datasets):
    data = open_for_training([str(datasets["hdf5"]), str(datasets["parquet"])], DataSection(unverified=True))
    layout = data.layout
    line = describe_phase(Config.of(phase2=True), data)
    assert line == (
        f"phase 2: trains on {datasets['hdf5']}, {datasets['parquet']}: {data.examples} examples of "
        f"{layout.max_seq_length} ids, {layout.max_predictions_per_seq} masked"
    )
    held_out = open_for_training(str(datasets["hdf5"]), DataSection(unverified=True))
    end = f"; evaluates on {datasets['hdf5']}: {held_out.examples} examples"
    assert describe_phase(Config.of(phase2=True), data, held_out) == line + end
