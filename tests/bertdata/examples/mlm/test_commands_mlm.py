"""Masked blocks through every command and container."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bertdata as face
from bertdata.cli.main import main
from bertdata.errors import SettingsError
from bertdata.examples.mlm.batch import MlmExample
from bertdata.records import ShardLayout
from bertdata.shards.containers import open_reader
from tests.support.plain_objective import NAME as PLAIN

FORMATS = ("tfrecord", "hdf5", "parquet")
SHARES = ("--mask-share=1", "--random-share=0", "--kept-share=0")
FLAGS = ("--objective=mlm", "--max-seq-length=64", "--masked-lm-prob=0.3", "--dupe-factor=2", *SHARES)
LAYOUT = ShardLayout(objective="mlm", max_seq_length=64, max_predictions_per_seq=19)


def create(corpus: list[Path], vocabulary: Path, output: Path, *flags: str) -> int:
    words = ["create", *map(str, corpus), "--output", str(output), "--vocab", str(vocabulary)]
    return main([*words, *flags, "--workers=1"])


@pytest.fixture(scope="module")
def datasets(corpus: list[Path], small_vocabulary_file: Path, tmp_path_factory: Any) -> dict[str, Path]:
    """The sample corpus as masked blocks in each container."""
    place = tmp_path_factory.mktemp("mlm")
    for format in FORMATS:
        assert create(corpus, small_vocabulary_file, place / format, *FLAGS, f"--format={format}") == 0
    return {format: place / format for format in FORMATS}


def shard(dataset: Path) -> Path:
    return next(path for path in sorted(dataset.iterdir()) if path.name.startswith("part-00001"))


def rows(path: Path, objective: str | None = None) -> Iterator[Any]:
    with open_reader(str(path), objective=objective) as reader:
        assert reader.layout == LAYOUT
        for batch in reader.batches(50):
            yield from batch.examples()


def restored(example: MlmExample) -> list[int]:
    """The ids with the labels put back."""
    ids = list(example.ids)
    for position, label in zip(example.positions, example.labels, strict=True):
        ids[position] = label
    return ids


def manifest(dataset: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((dataset / "manifest.json").read_text())
    return found


def test_a_file_by_itself_is_known_by_its_fields(datasets):
    found = {format: list(rows(shard(path))) for format, path in datasets.items()}
    assert found["tfrecord"] == found["hdf5"] == found["parquet"]
    assert {type(example) for example in found["hdf5"]} == {MlmExample}
    assert max(len(example.positions) for example in found["hdf5"]) == 19


def test_the_manifest_names_objective_and_settings_and_no_recipe(datasets):
    found = {format: manifest(path) for format, path in datasets.items()}
    settings = found["hdf5"]["settings"]["objective"]
    assert found["hdf5"]["recipe"] is None
    assert found["hdf5"]["phase"] is None
    assert settings["name"] == "mlm"
    assert settings["blocks"] == "complete_doc"
    assert (settings["masked_lm_prob"], settings["max_predictions_per_seq"]) == (0.3, 19)
    assert not {"short_seq_prob", "remask", "masks"} & set(settings)
    content = [[entry["content_md5"] for entry in one["shards"]] for one in found.values()]
    assert content[0] == content[1] == content[2]
    assert content[0] == [entry["md5"] for entry in found["tfrecord"]["shards"]]


@pytest.mark.parametrize("format", FORMATS)
def test_it_is_verified_shown_and_counted(bertdata, datasets, small_vocabulary_file, format):
    outcome = bertdata("verify-md5", datasets[format], "--content")
    assert outcome.status == 0, outcome.err
    assert "3 files right, sound" in outcome.out
    outcome = bertdata("show", shard(datasets[format]), "--vocab", small_vocabulary_file, "--index=2")
    head, text, *masks = outcome.out.splitlines()
    assert head.startswith("example 2: ")
    assert head.endswith(f"{len(masks)} masks")
    assert text.split()[0] == "[CLS]"
    assert {line.split()[1] for line in masks} == {"[MASK]"}
    outcome = bertdata("stats", datasets[format], "--json", "--workers=1", "--vocab", small_vocabulary_file)
    (found,) = json.loads(outcome.out)["datasets"]
    assert found["title"] == found["objective"] == "mlm"
    assert found["masks"]["kinds"]["mask"]["share"] == 1.0
    assert found["masks"]["masked_tokens"] == manifest(datasets[format])["totals"]["masked_tokens"]
    assert "(expected 100%)" in bertdata("stats", datasets[format], "--workers=1").out


@pytest.mark.parametrize("format", FORMATS)
def test_md5_of_the_content_is_that_of_the_tfrecord(bertdata, datasets, format):
    expected = hashlib.md5(shard(datasets["tfrecord"]).read_bytes()).hexdigest()
    outcome = bertdata("md5", "--content", shard(datasets[format]))
    assert outcome.out.split()[0] == expected


@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("target", FORMATS)
def test_convert_loses_nothing(bertdata, datasets, tmp_path, source, target):
    converted, back = tmp_path / f"shard.{target}", tmp_path / "back.tfrecord"
    assert bertdata("convert", shard(datasets[source]), converted).status == 0
    assert bertdata("convert", converted, back).status == 0
    assert back.read_bytes() == shard(datasets["tfrecord"]).read_bytes()


@pytest.mark.parametrize("format", FORMATS)
def test_open_dataset_gives_examples_and_models_inputs(datasets, format):
    dataset = face.open_dataset(str(datasets[format]))
    assert dataset.layout == LAYOUT
    examples = list(dataset)
    assert len(examples) == manifest(datasets[format])["totals"]["examples"]
    batch = dataset.collator()(examples[:3])
    assert set(batch) == {"input_ids", "attention_mask", "labels"}
    row, labels = examples[0], batch["labels"][0].tolist()
    assert [labels[position] for position in row.positions] == row.labels
    assert sum(label != -100 for label in labels) == len(row.labels)


@pytest.mark.thorough
def test_masks_at_load_are_drawn_anew_for_each_epoch(datasets, corpus, small_vocabulary_file, tmp_path):
    """Those that the files have do not count."""
    flags = ("--objective=mlm", "--max-seq-length=64", "--no-masks")
    assert create(corpus, small_vocabulary_file, tmp_path / "plain", *flags) == 0
    plain = face.open_dataset(str(tmp_path / "plain"))
    assert not any(example.positions for example in plain)
    first, second = ([*plain.masked(epoch=epoch, masked_lm_prob=0.3)] for epoch in (0, 1))
    assert first == [*plain.masked(masked_lm_prob=0.3)]
    assert first != second
    assert {type(example) for example in first} == {MlmExample}
    for masked, original in zip(first, plain, strict=True):
        assert restored(masked) == original.ids
        assert len(masked.positions) == max(1, round(0.3 * len(original.ids)))  # the dataset's rate is 15 %
        assert all(len(example.positions) <= 10 for example in plain.masked())
    made = face.open_dataset(str(datasets["hdf5"]))
    assert [*map(restored, made.masked())] == [*map(restored, made)]


def test_masks_at_load_need_an_objective_with_masked_words(corpus, small_vocabulary_file, tmp_path):
    assert create(corpus[:1], small_vocabulary_file, tmp_path, f"--objective={PLAIN}") == 0
    with pytest.raises(SettingsError, match="the examples of the objective .*:PLAIN have no masked words"):
        face.open_dataset(str(tmp_path), objective=PLAIN).masked(max_predictions_per_seq=5)


def test_engines_write_the_same_shards(corpus, small_vocabulary_file, datasets, tmp_path):
    flags = (*FLAGS, "--engine=python")
    assert create(corpus, small_vocabulary_file, tmp_path, *flags) == 0
    assert (tmp_path / "MD5SUMS").read_bytes() == (datasets["tfrecord"] / "MD5SUMS").read_bytes()


def test_blocks_of_a_shuffled_corpus_come_in_bins(bertdata, corpus, small_vocabulary_file, tmp_path):
    flags = ("--shuffle=global", "--num-shards=2", "--bin-size=32", "--no-masks", "--blocks=none")
    assert (
        create(
            corpus, small_vocabulary_file, tmp_path / "out", "--objective=mlm", "--max-seq-length=64", *flags
        )
        == 0
    )
    found = manifest(tmp_path / "out")
    assert [shard["name"].rpartition(".bin")[2] for shard in found["shards"]] == [
        "-00.tfrecord",
        "-01.tfrecord",
    ] * 2
    assert found["totals"]["masked_tokens"] == 0
    assert found["settings"]["objective"]["max_predictions_per_seq"] == 10
    assert bertdata("verify-md5", tmp_path / "out", "--content").status == 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--recipe=nvidia",), "--recipe nvidia goes with the objective of the recipe"),
        (("--phase=2",), "--phase 2 goes with the objective of the recipe"),
        (
            ("--short-seq-prob=0.2",),
            "unknown settings: --short-seq-prob; the objective mlm has none of that name",
        ),
        (
            ("--no-masks", "--dupe-factor=3"),
            "--dupe-factor is 3, expected 1: without masks all passes are alike",
        ),
        (("--masked-lm-prob=0",), "--masked-lm-prob is 0, expected a share above 0"),
    ],
)
@pytest.mark.parametrize("objective", ["mlm", PLAIN])
def test_what_does_not_go_with_the_objective_is_refused(
    bertdata, corpus, small_vocabulary_file, tmp_path, objective, flags, message
):
    words = ["create", corpus[0], "--output", tmp_path / "out", "--vocab", small_vocabulary_file]
    outcome = bertdata(*words, "--objective", objective, *flags)
    if objective == PLAIN and "objective of the recipe" not in message:
        message = "unknown settings"
    outcome.assert_one_error(2, message)
    assert not (tmp_path / "out").exists()
