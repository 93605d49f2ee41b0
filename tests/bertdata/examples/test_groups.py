"""Groups of columns: an objective with groups of its own goes through everything that has examples."""

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import beam_pipelines.pack
import beam_pipelines.prepare
import bertdata as face
from bertdata.cli.main import main
from bertdata.errors import SettingsError, ShardError
from bertdata.examples.bert.batch import BertBatch
from bertdata.examples.groups import MASKS, PAIRS, find_mask_columns
from bertdata.examples.objective import Objective
from bertdata.examples.objectives import find_objective
from bertdata.records import Buffer, ColumnGroup, ExampleBatch, ShardLayout, column
from bertdata.shards.containers import make_writer, open_reader
from bertdata.shards.tfrecord import encode_batch
from tests.support.span_objective import FIELDS, NAME, SPANS, SpanBatch, SpanExample

FORMATS = ("tfrecord", "hdf5", "parquet")
SIZES = {"max_seq_length": 48, "max_spans": 8}
FLAGS = ("--objective", NAME, "--max-seq-length=48", "--max-spans=8")
LAYOUT = ShardLayout.of_sizes(SIZES, objective=NAME)


@pytest.fixture(scope="module")
def datasets(corpus: list[Path], small_vocabulary_file: Path, tmp_path_factory: Any) -> dict[str, Path]:
    """The sample corpus as spans in each container, made by two workers."""
    place = tmp_path_factory.mktemp("spans")
    for format in FORMATS:
        words = ["create", *map(str, corpus), "--output", str(place / format), "--workers=2"]
        words += ["--vocab", str(small_vocabulary_file), *FLAGS, f"--format={format}"]
        assert main(words) == 0
    return {format: place / format for format in FORMATS}


def shards(dataset: Path) -> list[Path]:
    return sorted(path for path in dataset.iterdir() if path.suffix in (".tfrecord", ".hdf5", ".parquet"))


def rows(path: Path, objective: str | None = NAME, layout: ShardLayout = LAYOUT) -> list[SpanExample]:
    with open_reader(str(path), objective=objective) as reader:
        assert reader.layout == layout
        return [example for batch in reader.batches(50) for example in batch.examples()]


def all_rows(dataset: Path, layout: ShardLayout = LAYOUT) -> list[SpanExample]:
    return [example for path in shards(dataset) for example in rows(path, layout=layout)]


def manifest(dataset: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((dataset / "manifest.json").read_text())
    return found


def own_settings(dataset: Path) -> dict[str, Any]:
    found: dict[str, Any] = manifest(dataset)["settings"]["objective"]
    return found


def test_every_container_holds_the_same_examples(datasets):
    found = {format: all_rows(path) for format, path in datasets.items()}
    assert found["tfrecord"] == found["hdf5"] == found["parquet"]
    counts = {len(example.first_tokens) for example in found["hdf5"]}
    assert max(counts) == 8
    assert len(counts) > 3
    for example in found["hdf5"]:
        assert len(example.word_starts) == len(example.ids)
        spans = zip(example.first_tokens, example.last_tokens, example.span_labels, strict=True)
        assert all(last - first + 1 == label for first, last, label in spans)
    assert {bit for example in found["hdf5"] for bit in example.word_starts} == {0, 1}


def test_the_manifest_has_objective_and_limits_and_counts_no_masks(datasets):
    for format, path in datasets.items():
        found = manifest(path)
        assert own_settings(path)["name"] == NAME
        assert {name: own_settings(path)[name] for name in SIZES} == SIZES
        assert "max_predictions_per_seq" not in own_settings(path)
        assert found["totals"]["masked_tokens"] == 0
        contents = [entry["content_md5"] for entry in found["shards"]]
        assert contents == [entry["md5"] for entry in manifest(datasets["tfrecord"])["shards"]], format


@pytest.mark.parametrize("format", ["hdf5", "parquet"])
def test_a_file_by_itself_names_its_objective(datasets, tmp_path, format):
    copy = tmp_path / f"alone.{format}"
    copy.write_bytes(shards(datasets[format])[1].read_bytes())
    assert rows(copy, None) == rows(shards(datasets["tfrecord"])[1])


def test_both_engines_write_and_read_the_same(datasets, corpus, small_vocabulary_file, tmp_path):
    words = ["create", *map(str, corpus), "--output", str(tmp_path), "--vocab", str(small_vocabulary_file)]
    assert main([*words, *FLAGS, "--engine=python", "--workers=1"]) == 0
    assert (tmp_path / "MD5SUMS").read_bytes() == (datasets["tfrecord"] / "MD5SUMS").read_bytes()
    path = str(shards(datasets["tfrecord"])[0])
    found = {}
    for engine in ("native", "python"):
        with open_reader(path, engine, NAME) as reader:
            found[engine] = [example for batch in reader.batches(7) for example in batch.examples()]
    assert found["native"] == found["python"]


@pytest.mark.parametrize("format", FORMATS)
def test_it_is_verified_shown_and_counted(bertdata, datasets, small_vocabulary_file, format):
    for words in ((), ("--content",)):
        outcome = bertdata("verify-md5", datasets[format], *words)
        assert outcome.status == 0, outcome.err
        assert "3 files right, sound" in outcome.out
    path = shards(datasets[format])[1]
    outcome = bertdata("show", path, "--vocab", small_vocabulary_file, "--index=2")
    assert outcome.status == 0, outcome.err
    assert outcome.out.splitlines()[1].split()[0] == "[CLS]"
    outcome = bertdata("stats", datasets[format], "--json", "--workers=1")
    assert outcome.status == 0, outcome.err
    (found,) = json.loads(outcome.out)["datasets"]
    assert (found["objective"], found["max_spans"]) == (NAME, 8)
    assert found["examples"] == len(all_rows(datasets["tfrecord"]))
    expected = hashlib.md5(shards(datasets["tfrecord"])[1].read_bytes()).hexdigest()
    assert bertdata("md5", "--content", path, "--objective", NAME).out.split()[0] == expected


@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("target", FORMATS)
def test_convert_loses_nothing(bertdata, datasets, tmp_path, source, target):
    converted, back = tmp_path / f"shard.{target}", tmp_path / "back.tfrecord"
    original = shards(datasets["tfrecord"])[1]
    outcome = bertdata("convert", shards(datasets[source])[1], converted)
    assert outcome.status == 0, outcome.err
    assert bertdata("convert", converted, back, "--objective", NAME).status == 0
    assert back.read_bytes() == original.read_bytes()


def test_open_dataset_gives_columns_and_models_inputs(datasets):
    data = face.open_dataset(str(datasets["hdf5"]), objective=NAME)
    examples = list(data)
    assert data.layout == LAYOUT
    assert examples == all_rows(datasets["tfrecord"])
    columns = next(data.numpy(batch_size=len(data), padded=False))
    assert columns["span_ends"][-1] == sum(len(example.span_labels) for example in examples)
    padded = next(data.numpy(batch_size=3))
    assert padded["span_firsts"].shape == (3, 8)
    first = examples[0].first_tokens
    assert padded["span_firsts"][0].tolist() == first + [-1] * (8 - len(first))
    batch = data.collator()(examples[:3])
    assert all(np.array_equal(batch[name].numpy(), values) for name, values in padded.items())
    with pytest.raises(SettingsError, match="have no masked words"):
        data.masked(max_predictions_per_seq=3)


def test_bins_of_lengths_hold_the_same_examples(datasets, corpus, small_vocabulary_file, tmp_path):
    words = ["create", *map(str, corpus), "--output", str(tmp_path), "--vocab", str(small_vocabulary_file)]
    assert main([*words, *FLAGS, "--bin-size=16", "--format=hdf5", "--workers=1"]) == 0
    assert len(shards(tmp_path)) == 9
    assert sorted(map(repr, all_rows(tmp_path))) == sorted(map(repr, all_rows(datasets["tfrecord"])))


@pytest.fixture(scope="module")
def packed(datasets: dict[str, Path], tmp_path_factory: Any) -> Path:
    output: Path = tmp_path_factory.mktemp("packed") / "flat"
    assert main(["pack", str(datasets["hdf5"]), "--output", str(output), "--workers=2"]) == 0
    return output


PACKED = replace(LAYOUT, packing="flat", sequences_per_row=3)


def test_rows_of_the_layout_flat_hold_the_same_examples(bertdata, datasets, packed):
    assert sorted(map(repr, all_rows(packed, PACKED))) == sorted(map(repr, all_rows(datasets["tfrecord"])))
    found = manifest(packed)
    assert {name: own_settings(packed)[name] for name in SIZES} == SIZES
    assert sum(entry["rows"] for entry in found["shards"]) < found["totals"]["examples"]
    outcome = bertdata("verify-md5", packed, "--content")
    assert outcome.status == 0, outcome.err
    assert bertdata("show", shards(packed)[0]).status == 0
    assert bertdata("stats", packed, "--workers=1").status == 0
    assert [*face.open_dataset(str(packed), objective=NAME)] == all_rows(packed, PACKED)


@pytest.mark.parametrize("format", FORMATS)
def test_files_without_a_manifest_are_packed_and_read_back(
    bertdata, datasets, small_vocabulary_file, tmp_path, format
):
    """The manifest of their rows has the sizes that these examples have, and none of masks."""
    source, output = tmp_path / "files", tmp_path / "rows"
    source.mkdir()
    for path in shards(datasets[format]):
        (source / path.name).write_bytes(path.read_bytes())
    words = ["pack", source, "--output", output, "--unverified", "--vocab", small_vocabulary_file]
    outcome = bertdata(*words, "--objective", NAME, "--workers=1")
    assert outcome.status == 0, outcome.err
    assert set(own_settings(output)) == {"name", *SIZES, "unverified"}
    outcome = bertdata("verify-md5", output, "--content")
    assert outcome.status == 0, outcome.out
    found = [*face.open_dataset(output)]
    assert sorted(map(repr, found)) == sorted(map(repr, all_rows(datasets["tfrecord"])))


@pytest.mark.parametrize("layout", ["habana", "graphcore", "nvidia"])
def test_a_layout_without_the_groups_is_refused(bertdata, datasets, tmp_path, layout):
    outcome = bertdata("pack", datasets["hdf5"], "--output", tmp_path / "out", "--layout", layout)
    outcome.assert_one_error(
        2,
        f"layout {layout} holds examples of ids, segment, masks and pair label; those of the objective "
        f"{NAME} have ids, word starts and spans; the layout flat holds any",
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("words", [("--to=lddl",), ("--to=nvidia-mlperf", "--num-shards=2")])
def test_another_programs_container_without_the_groups_is_refused(bertdata, datasets, tmp_path, words):
    outcome = bertdata("convert", datasets["hdf5"], tmp_path / "out", *words)
    outcome.assert_one_error(
        2, "holds examples of ids, segment, masks and pair label; those of the objective"
    )
    assert not (tmp_path / "out").exists()


def test_a_pipeline_makes_the_same_bytes(datasets, packed, corpus, small_vocabulary_file, tmp_path):
    words = ["--input", *map(str, corpus), "--output", str(tmp_path / "made")]
    words += ["--vocab", str(small_vocabulary_file), *FLAGS, "--format=hdf5", "--runner=DirectRunner"]
    assert beam_pipelines.prepare.main(words) == 0
    assert (tmp_path / "made/manifest.json").read_bytes() == (datasets["hdf5"] / "manifest.json").read_bytes()
    words = [str(tmp_path / "made"), "--output", str(tmp_path / "rows"), "--objective", NAME]
    assert beam_pipelines.pack.main([*words, "--runner=DirectRunner"]) == 0
    assert (tmp_path / "rows/MD5SUMS").read_bytes() == (packed / "MD5SUMS").read_bytes()


# Limits


def batch_of(*counts: int) -> SpanBatch:
    """Examples of 20 ids with so many spans of one token each."""
    examples = [
        SpanExample(
            ids=[7] * 20,
            word_starts=[1] * 20,
            first_tokens=[*range(1, count + 1)],
            last_tokens=[*range(1, count + 1)],
            span_labels=[1] * count,
        )
        for count in counts
    ]
    return SpanBatch.of(examples, wide=False)


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("format", FORMATS)
def test_too_many_items_are_named_with_file_and_record(tmp_path, format, engine):
    with (tmp_path / "x").open("wb") as file:
        writer = make_writer(format, file, LAYOUT, engine, "made/part.x")
        writer.write(batch_of(8, 0))
        with pytest.raises(ShardError) as refused:
            writer.write(batch_of(3, 9, 11))
    assert str(refused.value).startswith("made/part.x: record 3: 9 spans, expected ")


def test_create_names_the_file_of_too_many_items(
    bertdata, monkeypatch, corpus, small_vocabulary_file, tmp_path
):
    made = find_objective(NAME).make
    monkeypatch.setattr(
        type(find_objective(NAME)),
        "make",
        lambda self, documents, vocabulary, settings, engine=None: made(
            documents, vocabulary, replace(settings, max_spans=30), engine
        ),
    )
    words = ["create", corpus[0], "--output", tmp_path / "out", "--vocab", small_vocabulary_file, *FLAGS]
    outcome = bertdata(*words, "--workers=1")
    shard = f"{tmp_path}/out/{corpus[0].name}.tfrecord"
    assert outcome.status == 1
    [line] = outcome.err.splitlines()[-1:]
    assert f"{shard}: record " in line
    assert "spans, expected at most 8" in line


@pytest.mark.parametrize("most", [-3, 0, 65_536])
def test_a_limit_that_no_record_can_have_is_refused(bertdata, corpus, small_vocabulary_file, tmp_path, most):
    words = ["create", corpus[0], "--output", tmp_path / "out", "--vocab", small_vocabulary_file]
    outcome = bertdata(*words, "--objective", NAME, f"--max-spans={most}")
    outcome.assert_one_error(2, f"--max-spans is {most}, expected 1 to 65535")
    assert not (tmp_path / "out").exists()


def test_each_group_has_its_own_limit(tmp_path):
    """A layout of few spans and many ids, and the other way round."""
    for sizes, message in (({"max_spans": 2}, "3 spans, expected 0 to 2"), ({}, "20 ids, expected 1 to 10")):
        layout = ShardLayout.of_sizes({"max_seq_length": 10, **SIZES, **sizes}, objective=NAME)
        layout = layout if sizes else replace(layout, max_seq_length=10)
        with (tmp_path / "x").open("wb") as file, pytest.raises(ShardError, match=message):
            make_writer("parquet", file, layout).write(batch_of(3))


@pytest.mark.parametrize("format", ["hdf5", "parquet"])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"span_labels": [0]}, r"span label 0, expected 1 to"),
        ({"word_starts": [2] + [0] * 19}, "word start 2, expected 0 to 1"),
        ({"last_tokens": [20]}, "last token 20, expected 0 to 19"),
    ],
)
def test_messages_call_items_by_their_columns(tmp_path, format, changes, message):
    [example] = batch_of(1).examples()
    batch = SpanBatch.of([replace(example, **changes)], wide=False)
    with (tmp_path / "x").open("wb") as file:
        writer = make_writer(format, file, LAYOUT)
        if format == "parquet" and "span_labels" in changes:
            writer.write(batch)  # only where the padding ends the items can none be as the padding
            return
        with pytest.raises(ShardError, match=f"{format} shard: record 0: {message}"):
            writer.write(batch)


# Which objective a file is of


def bert_shard(corpus: list[Path], vocabulary: Path, place: Path, format: str) -> Path:
    words = ["create", str(corpus[0]), "--output", str(place), "--vocab", str(vocabulary), "--dupe-factor=1"]
    assert main([*words, f"--format={format}", "--max-seq-length=64", "--max-predictions-per-seq=5"]) == 0
    [path] = shards(place)
    return path


def test_a_file_with_one_more_dataset_is_of_no_objective(corpus, small_vocabulary_file, tmp_path):
    path = bert_shard(corpus, small_vocabulary_file, tmp_path, "hdf5")
    with h5py.File(path, "a") as file:
        assert not dict(file.attrs), "the default objective is not named: its bytes stay"
        file["word_bits"] = np.zeros(3)
    with pytest.raises(ShardError, match="has also word_bits, which examples of the objective bert have not"):
        rows(path, None)


@pytest.mark.parametrize("format", ["tfrecord", "hdf5"])
def test_a_file_is_not_read_as_of_an_objective_with_some_of_its_fields(
    bertdata, corpus, small_vocabulary_file, tmp_path, format
):
    path = bert_shard(corpus, small_vocabulary_file, tmp_path / "bert", format)
    path = path.rename(tmp_path / path.name)  # away from its manifest
    outcome = bertdata("convert", path, tmp_path / "x.parquet", "--objective=mlm")
    outcome.assert_one_error(1, "next_sentence_labels, segment_ids")


# Mistakes of a class


def test_items_without_a_limit_are_a_mistake_that_is_named():
    @dataclass(frozen=True, kw_only=True, slots=True, eq=False)
    class Limitless(ExampleBatch):
        numbers: Buffer = column("uint16", ends="number_ends")
        number_ends: Buffer = column("uint32")

    with pytest.raises(SettingsError, match="column numbers of Limitless: .*expected a group with a size"):
        Limitless.columns()


def test_a_layout_without_the_size_is_a_mistake_that_is_named():
    with pytest.raises(SettingsError, match="the layout of its settings has no size max_spans"):
        encode_batch(batch_of(1), ShardLayout(objective=NAME, max_seq_length=20))


def test_masks_are_places_and_ids():
    @dataclass(frozen=True, kw_only=True, slots=True, eq=False)
    class Weighted(BertBatch):
        weights: Buffer = column("uint8", group=MASKS, ends="mask_ends")

    with pytest.raises(
        SettingsError, match="its masks have the columns positions, labels, mask_ends, weights"
    ):
        find_mask_columns(Weighted)
    assert find_mask_columns(BertBatch).places.name == "positions"
    assert BertBatch.groups() == PAIRS
    assert ColumnGroup(name="spans", items="spans", size="max_spans") == SPANS


@pytest.mark.parametrize(
    ("form", "without", "message"),
    [
        ("tfrecord", "spans_used", "none tells how many first_tokens there are; expected a field of ones$"),
        ("hdf5", "tokens_used", "none tells how many ids there are"),
        ("parquet", "word_starts", "none holds the values of column word_starts"),
    ],
)
def test_fields_that_cannot_be_read_back_are_a_mistake_that_is_named(form, without, message):
    class Unreadable(Objective):
        batch_type = SpanBatch

        def make(self, documents, vocabulary, settings, engine=None):
            raise AssertionError

    declared = {name: field for name, field in FIELDS[form].items() if name != without}
    with pytest.raises(SettingsError, match=f"fields of {form}: {message}"):
        Unreadable("x", {form: declared}).fields(form)


def test_a_flag_has_the_form_of_the_objective_that_is_named(corpus, small_vocabulary_file, tmp_path):
    """``blocks`` is a choice of an objective of the package, a number of the test's."""
    words = ["create", str(corpus[0]), "--vocab", str(small_vocabulary_file), "--workers=1"]
    assert main([*words, "--output", str(tmp_path / "choice"), "--objective=mlm", "--blocks=none"]) == 0
    assert own_settings(tmp_path / "choice")["blocks"] == "none"
    assert main([*words, "--output", str(tmp_path / "number"), *FLAGS, "--blocks=7"]) == 0
    assert own_settings(tmp_path / "number")["blocks"] == 7
