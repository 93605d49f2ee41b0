"""Masked spans through every command and container."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bertdata as face
from bertdata.cli.main import main
from bertdata.examples.span.batch import SpanExample
from bertdata.records import ShardLayout
from bertdata.shards.containers import open_reader

FORMATS = ("tfrecord", "hdf5", "parquet")
FLAGS = ("--objective=span", "--max-seq-length=64", "--masked-lm-prob=0.3", "--dupe-factor=2")
LAYOUT = ShardLayout(objective="span", max_seq_length=64, max_predictions_per_seq=19)


def create(corpus: list[Path], vocabulary: Path, output: Path, *flags: str) -> int:
    words = ["create", *map(str, corpus), "--output", str(output), "--vocab", str(vocabulary)]
    return main([*words, *flags, "--workers=1"])


@pytest.fixture(scope="module")
def datasets(corpus: list[Path], small_vocabulary_file: Path, tmp_path_factory: Any) -> dict[str, Path]:
    """The sample corpus as masked spans in each container."""
    place = tmp_path_factory.mktemp("span")
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


def manifest(dataset: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((dataset / "manifest.json").read_text())
    return found


def test_a_file_by_itself_is_known_by_its_fields(datasets):
    found = {format: list(rows(shard(path))) for format, path in datasets.items()}
    assert found["tfrecord"] == found["hdf5"] == found["parquet"]
    assert {type(example) for example in found["hdf5"]} == {SpanExample}
    assert max(len(example.left_boundaries) for example in found["hdf5"]) > 3


def test_the_manifest_names_objective_and_settings_and_no_recipe(datasets):
    found = {format: manifest(path) for format, path in datasets.items()}
    settings = found["hdf5"]["settings"]["objective"]
    assert found["hdf5"]["recipe"] is None
    assert (settings["name"], settings["max_predictions_per_seq"]) == ("span", 19)
    assert (settings["longest_span"], settings["geometric_p"], settings["as_original"]) == (10, 0.2, False)
    assert (settings["replacement"], settings["endpoints"]) == ("span", "external")
    content = [[entry["content_md5"] for entry in one["shards"]] for one in found.values()]
    assert content[0] == content[1] == content[2]
    assert content[0] == [entry["md5"] for entry in found["tfrecord"]["shards"]]


@pytest.mark.parametrize("format", FORMATS)
def test_it_is_verified_shown_and_counted(bertdata, datasets, small_vocabulary_file, format):
    outcome = bertdata("verify-md5", datasets[format], "--content")
    assert outcome.status == 0, outcome.err
    assert "3 files right, sound" in outcome.out
    outcome = bertdata("show", shard(datasets[format]), "--vocab", small_vocabulary_file, "--index=2")
    head, text, *lines = outcome.out.splitlines()
    spans = [line for line in lines if " to " in line and ": " in line]
    assert head.startswith("example 2: ")
    assert head.endswith(
        f"{len(lines) - len(spans)} masks, {len(spans)} span{'s' * (len(spans) != 1)} with targets"
    )
    assert text.split()[0] == "[CLS]"
    outcome = bertdata("stats", datasets[format], "--json", "--workers=1", "--vocab", small_vocabulary_file)
    (found,) = json.loads(outcome.out)["datasets"]
    examples = [example for path in sorted(datasets[format].glob("part-*")) for example in rows(path)]
    spans = [
        right - left - 1
        for example in examples
        for left, right in zip(example.left_boundaries, example.right_boundaries, strict=True)
    ]
    assert found["spans"]["spans"] == len(spans)
    assert found["spans"]["targets"]["mean"] == pytest.approx(sum(spans) / len(spans), abs=1e-6)
    assert found["spans"]["target_share"] == pytest.approx(
        sum(spans) / found["masks"]["masked_tokens"], abs=1e-6
    )
    assert found["masks"]["masked_tokens"] == manifest(datasets[format])["totals"]["masked_tokens"]
    told = bertdata("stats", datasets[format], "--workers=1").out
    assert f"{len(spans):,} between two boundaries" in told


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
    assert set(batch) == {"input_ids", "attention_mask", "labels", "left_boundaries", "right_boundaries"}
    row, lefts = examples[0], batch["left_boundaries"][0].tolist()
    assert lefts == [*row.left_boundaries, *[-1] * (19 - len(row.left_boundaries))]


def test_rows_are_packed_flat(bertdata, datasets, tmp_path):
    outcome = bertdata("pack", datasets["parquet"], "--output", tmp_path / "packed", "--layout=flat")
    assert outcome.status == 0, outcome.err
    packed = face.open_dataset(str(tmp_path / "packed"))
    key = repr
    assert sorted(map(key, packed)) == sorted(map(key, face.open_dataset(str(datasets["parquet"]))))


def test_engines_write_the_same_shards(corpus, small_vocabulary_file, datasets, tmp_path):
    assert create(corpus, small_vocabulary_file, tmp_path, *FLAGS, "--engine=python") == 0
    assert (tmp_path / "MD5SUMS").read_bytes() == (datasets["tfrecord"] / "MD5SUMS").read_bytes()


def test_blocks_of_a_shuffled_corpus_come_in_bins(bertdata, corpus, small_vocabulary_file, tmp_path):
    flags = ("--shuffle=global", "--num-shards=2", "--bin-size=32", "--objective=span", "--max-seq-length=64")
    assert create(corpus, small_vocabulary_file, tmp_path / "out", *flags) == 0
    names = [entry["name"].rpartition(".bin")[2] for entry in manifest(tmp_path / "out")["shards"]]
    assert names == ["-00.tfrecord", "-01.tfrecord"] * 2
    assert bertdata("verify-md5", tmp_path / "out", "--content").status == 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--recipe=nvidia",), "--recipe nvidia goes with the objective of the recipe"),
        (("--whole-word-mask",), "unknown settings: --whole-word-mask; the objective span has none"),
        (("--no-masks", "--dupe-factor=3"), "--dupe-factor is 3, expected 1"),
        (("--shortest-span=11", "--longest-span=10"), "spans of 11 to 10 words"),
        (("--endpoints=both",), "--endpoints"),
    ],
)
def test_what_does_not_go_with_the_objective_is_refused(
    bertdata, corpus, small_vocabulary_file, tmp_path, flags, message
):
    words = ["create", corpus[0], "--output", tmp_path / "out", "--vocab", small_vocabulary_file]
    outcome = bertdata(*words, "--objective=span", *flags)
    outcome.assert_one_error(2, message)
    assert not (tmp_path / "out").exists()


def test_spans_of_byte_pairs_start_with_words(kit, corpus, tmp_path):
    """Where the ids do not tell words: in files, and at load by the bits that --no-masks keeps."""
    tokenizer = kit / "encoders" / "tokenizers" / "bpe-roberta.json"
    if not tokenizer.is_file():
        pytest.skip("the kit has no byte pairs")
    given = ["create", str(corpus[0]), f"--tokenizer={tokenizer}", "--role", "mask=<mask>", "--workers=1"]
    for name, flags in (("made", []), ("plain", ["--no-masks"])):
        own = [*given, "--objective=span", "--max-seq-length=64", f"--output={tmp_path / name}", *flags]
        assert main(own) == 0
    made, plain = (face.open_dataset(str(tmp_path / name)) for name in ("made", "plain"))
    assert plain.layout.objective == "span_word_starts"
    starts = {tuple(example.ids): example.word_starts for example in plain}
    loaded = list(plain.masked())
    assert len(made) == len(loaded) > 100
    for example in [*made, *loaded]:
        ids = list(example.ids)
        for position, label in zip(example.positions, example.labels, strict=True):
            ids[position] = label
        firsts = [place for place in example.positions if place - 1 not in example.positions]
        assert all(starts[tuple(ids)][place] for place in firsts)
    assert any(not all(bits) for bits in starts.values())
