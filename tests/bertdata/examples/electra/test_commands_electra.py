"""ELECTRA's examples through every command and container."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import beam_pipelines.pack
import beam_pipelines.prepare
import bertdata as face
from bertdata.cli.main import main
from bertdata.errors import SettingsError
from bertdata.examples.electra.batch import ElectraExample
from bertdata.records import ShardLayout
from bertdata.shards.containers import open_reader

FORMATS = ("tfrecord", "hdf5", "parquet")
FLAGS = ("--objective=electra", "--max-seq-length=64", "--random-seed=3")
LAYOUT = ShardLayout(objective="electra", max_seq_length=64)
GROUPS = "objective electra have ids and segment"


def words(corpus: list[Path], vocabulary: Path, output: Path, *flags: str) -> list[str]:
    given = ["create", *map(str, corpus), "--output", str(output), "--vocab", str(vocabulary)]
    return [*given, *FLAGS, *flags]


@pytest.fixture(scope="module")
def datasets(corpus: list[Path], small_vocabulary_file: Path, tmp_path_factory: Any) -> dict[str, Path]:
    """The sample corpus in each container."""
    place = tmp_path_factory.mktemp("electra")
    for format in FORMATS:
        made = words(corpus, small_vocabulary_file, place / format, f"--format={format}", "--workers=1")
        assert main(made) == 0
    return {format: place / format for format in FORMATS}


def shards(dataset: Path) -> list[Path]:
    return sorted(path for path in dataset.iterdir() if path.suffix in (".tfrecord", ".hdf5", ".parquet"))


def rows(path: Path) -> list[ElectraExample]:
    with open_reader(str(path)) as reader:
        return [example for batch in reader.batches(50) for example in batch.examples()]


def all_rows(dataset: Path) -> list[ElectraExample]:
    return [example for path in shards(dataset) for example in rows(path)]


def test_a_file_by_itself_is_known_by_its_fields(datasets, tmp_path):
    found = {}
    for format, dataset in datasets.items():
        copy = tmp_path / f"alone.{format}"
        copy.write_bytes(shards(dataset)[1].read_bytes())
        with open_reader(str(copy)) as reader:
            assert reader.layout == LAYOUT
        found[format] = rows(copy)
    assert found["tfrecord"] == found["hdf5"] == found["parquet"]
    assert {type(example) for example in found["hdf5"]} == {ElectraExample}
    assert {example.first_length == len(example.ids) for example in found["hdf5"]} == {True, False}


def test_the_manifest_has_its_settings_and_no_recipe(datasets):
    found = {format: json.loads((path / "manifest.json").read_text()) for format, path in datasets.items()}
    assert found["hdf5"]["recipe"] is None
    assert found["hdf5"]["settings"]["objective"] == {
        "name": "electra",
        "max_seq_length": 64,
        "random_seed": 3,
        "as_original": False,
    }
    contents = [[entry["content_md5"] for entry in one["shards"]] for one in found.values()]
    assert contents[0] == contents[1] == contents[2]
    assert contents[0] == [entry["md5"] for entry in found["tfrecord"]["shards"]]


def test_both_engines_write_and_read_the_same(datasets, corpus, small_vocabulary_file, tmp_path):
    assert main([*words(corpus, small_vocabulary_file, tmp_path), "--engine=python", "--workers=1"]) == 0
    assert (tmp_path / "MD5SUMS").read_bytes() == (datasets["tfrecord"] / "MD5SUMS").read_bytes()
    found = {}
    for engine in ("native", "python"):
        with open_reader(str(shards(tmp_path)[0]), engine) as reader:
            found[engine] = [example for batch in reader.batches(7) for example in batch.examples()]
    assert found["native"] == found["python"]


@pytest.mark.parametrize("format", FORMATS)
def test_it_is_verified_shown_and_counted(bertdata, datasets, small_vocabulary_file, format):
    outcome = bertdata("verify-md5", datasets[format], "--content")
    assert outcome.status == 0, outcome.err
    assert "3 files right, sound" in outcome.out
    path = shards(datasets[format])[1]
    outcome = bertdata("show", path, "--vocab", small_vocabulary_file, "--num=200")
    assert outcome.status == 0, outcome.err
    assert "  A  [CLS]" in outcome.out
    assert "  B  " in outcome.out
    outcome = bertdata("stats", datasets[format], "--json", "--workers=1")
    assert outcome.status == 0, outcome.err
    (found,) = json.loads(outcome.out)["datasets"]
    one = sum(example.first_length == len(example.ids) for example in all_rows(datasets["tfrecord"]))
    assert (found["objective"], found["one_segment"]["examples"]) == ("electra", one)
    expected = hashlib.md5(shards(datasets["tfrecord"])[1].read_bytes()).hexdigest()
    assert bertdata("md5", "--content", path).out.split()[0] == expected


@pytest.mark.parametrize("source", FORMATS)
def test_convert_loses_nothing(bertdata, datasets, tmp_path, source):
    for target in FORMATS:
        converted, back = tmp_path / f"shard.{target}", tmp_path / "back.tfrecord"
        assert bertdata("convert", shards(datasets[source])[1], converted).status == 0
        assert bertdata("convert", converted, back).status == 0
        assert back.read_bytes() == shards(datasets["tfrecord"])[1].read_bytes()


def test_a_model_gets_no_labels(datasets):
    data = face.open_dataset(str(datasets["hdf5"]))
    assert list(data) == all_rows(datasets["tfrecord"])
    found = data.collator()(list(data)[:4])
    assert set(found) == {"input_ids", "attention_mask", "token_type_ids"}
    for row, example in zip(found["token_type_ids"].tolist(), list(data), strict=False):
        assert sum(row) == len(example.ids) - example.first_length


def test_masks_at_load_are_refused(datasets):
    with pytest.raises(SettingsError, match="the examples of the objective electra have no masked words"):
        face.open_dataset(str(datasets["hdf5"])).masked()


def test_bins_of_lengths_hold_the_same_examples(datasets, corpus, small_vocabulary_file, tmp_path):
    assert main(words(corpus, small_vocabulary_file, tmp_path, "--bin-size=16", "--format=hdf5")) == 0
    assert sorted(map(repr, all_rows(tmp_path))) == sorted(map(repr, all_rows(datasets["tfrecord"])))


def test_rows_of_the_layout_flat_hold_the_same_examples(bertdata, datasets, tmp_path):
    assert bertdata("pack", datasets["parquet"], "--output", tmp_path / "flat").status == 0
    assert sorted(map(repr, all_rows(tmp_path / "flat"))) == sorted(map(repr, all_rows(datasets["tfrecord"])))
    assert bertdata("verify-md5", tmp_path / "flat", "--content").status == 0


@pytest.mark.parametrize("layout", ["habana", "graphcore", "nvidia"])
def test_other_layouts_hold_masks(bertdata, datasets, tmp_path, layout):
    outcome = bertdata("pack", datasets["hdf5"], "--output", tmp_path / "out", "--layout", layout)
    outcome.assert_one_error(2, f"{GROUPS}; the layout flat holds any")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--max-seq-length=4",), "--max-seq-length is 4, expected 5 to"),
        (("--masked-lm-prob=0.2",), "unknown settings: --masked-lm-prob"),
        (("--recipe=mlperf",), "--recipe mlperf goes with the objective of the recipe"),
        (("--as-original", "--format=hdf5"), "--as-original makes TFRecord files, expected no hdf5"),
        (("--as-original", "--bin-size=16"), "--as-original makes ELECTRA's files, expected no bins"),
        (("--as-original", "--shuffle=global", "--num-shards=2"), "leave out --shuffle"),
    ],
)
def test_settings_that_make_no_sense_are_one_line(
    bertdata, corpus, small_vocabulary_file, tmp_path, flags, message
):
    outcome = bertdata(*words(corpus, small_vocabulary_file, tmp_path / "out", *flags))
    outcome.assert_one_error(2, message)
    assert not (tmp_path / "out").exists()


def test_no_task_of_the_trainer_learns_it(datasets, tmp_path, capfd):
    from trainer.__main__ import main as train

    given = ["pretrain", "--config", "tiny", "--train-data", str(datasets["hdf5"]), "--device", "cpu"]
    assert train([*given, "--output-dir", str(tmp_path / "run"), "--steps", "1"]) == 2
    *_, line = capfd.readouterr().err.splitlines()
    assert "has the objective electra, which no task of the trainer learns" in line


@pytest.mark.thorough
def test_a_pipeline_makes_the_same_bytes(datasets, corpus, small_vocabulary_file, tmp_path):
    given = ["--input", *map(str, corpus), "--output", str(tmp_path / "made")]
    given += ["--vocab", str(small_vocabulary_file), *FLAGS, "--format=parquet", "--runner=DirectRunner"]
    assert beam_pipelines.prepare.main(given) == 0
    made = (tmp_path / "made/manifest.json").read_bytes()
    assert made == (datasets["parquet"] / "manifest.json").read_bytes()
