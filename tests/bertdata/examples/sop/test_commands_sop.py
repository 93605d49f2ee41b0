"""ALBERT's examples through every command and container."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import beam_pipelines.pack
import beam_pipelines.prepare
import bertdata as face
from bertdata.cli.main import main
from bertdata.examples.sop.batch import SopExample
from bertdata.records import ShardLayout
from bertdata.shards.containers import open_reader

FORMATS = ("tfrecord", "hdf5", "parquet")
FLAGS = ("--objective=sop", "--max-seq-length=64", "--max-predictions-per-seq=10", "--dupe-factor=2")
LAYOUT = ShardLayout(objective="sop", max_seq_length=64, max_predictions_per_seq=10)
GROUPS = "objective sop have ids, segment, word starts, masks and pair label"


def words(corpus: list[Path], vocabulary: Path, output: Path, *flags: str) -> list[str]:
    given = ["create", *map(str, corpus), "--output", str(output), "--vocab", str(vocabulary)]
    return [*given, *FLAGS, *flags]


@pytest.fixture(scope="module")
def datasets(corpus: list[Path], small_vocabulary_file: Path, tmp_path_factory: Any) -> dict[str, Path]:
    """The sample corpus in each container, made by two workers."""
    place = tmp_path_factory.mktemp("sop")
    for format in FORMATS:
        made = words(corpus, small_vocabulary_file, place / format, f"--format={format}", "--workers=2")
        assert main(made) == 0
    return {format: place / format for format in FORMATS}


def shards(dataset: Path) -> list[Path]:
    return sorted(path for path in dataset.iterdir() if path.suffix in (".tfrecord", ".hdf5", ".parquet"))


def rows(path: Path, objective: str | None = None) -> list[SopExample]:
    with open_reader(str(path), objective=objective) as reader:
        return [example for batch in reader.batches(50) for example in batch.examples()]


def all_rows(dataset: Path) -> list[SopExample]:
    return [example for path in shards(dataset) for example in rows(path)]


def manifest(dataset: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((dataset / "manifest.json").read_text())
    return found


def test_a_file_by_itself_is_known_by_its_fields(datasets, tmp_path):
    found = {}
    for format, dataset in datasets.items():
        copy = tmp_path / f"alone.{format}"
        copy.write_bytes(shards(dataset)[1].read_bytes())
        with open_reader(str(copy)) as reader:
            assert reader.layout == LAYOUT
        found[format] = rows(copy)
    assert found["tfrecord"] == found["hdf5"] == found["parquet"]
    assert {type(example) for example in found["hdf5"]} == {SopExample}
    assert {len(example.word_starts) - len(example.ids) for example in found["hdf5"]} == {0}
    assert {bit for example in found["hdf5"] for bit in example.word_starts} == {0, 1}
    assert {example.order_label for example in found["hdf5"]} == {0, 1}


def test_the_manifest_names_objective_and_settings_and_no_recipe(datasets):
    found = {format: manifest(path) for format, path in datasets.items()}
    settings = found["hdf5"]["settings"]["objective"]
    assert (found["hdf5"]["recipe"], found["hdf5"]["phase"], settings["name"]) == (None, None, "sop")
    assert (settings["ngram"], settings["whole_word_mask"], settings["permutation"]) == (3, True, False)
    contents = [[entry["content_md5"] for entry in one["shards"]] for one in found.values()]
    assert contents[0] == contents[1] == contents[2]
    assert contents[0] == [entry["md5"] for entry in found["tfrecord"]["shards"]]


def test_both_engines_write_and_read_the_same(datasets, corpus, small_vocabulary_file, tmp_path):
    assert main([*words(corpus, small_vocabulary_file, tmp_path), "--engine=python", "--workers=1"]) == 0
    assert (tmp_path / "MD5SUMS").read_bytes() == (datasets["tfrecord"] / "MD5SUMS").read_bytes()
    path = str(shards(tmp_path)[0])
    found = {}
    for engine in ("native", "python"):
        with open_reader(path, engine) as reader:
            found[engine] = [example for batch in reader.batches(7) for example in batch.examples()]
    assert found["native"] == found["python"]


@pytest.mark.parametrize("format", FORMATS)
def test_it_is_verified_shown_and_counted(bertdata, datasets, small_vocabulary_file, format):
    outcome = bertdata("verify-md5", datasets[format], "--content")
    assert outcome.status == 0, outcome.err
    assert "3 files right, sound" in outcome.out
    path = shards(datasets[format])[1]
    outcome = bertdata("show", path, "--vocab", small_vocabulary_file, "--index=2", "--num=1")
    assert outcome.status == 0, outcome.err
    first, a, b, *masks = outcome.out.splitlines()
    assert "sentence order kept" in first or "sentence order swapped" in first
    assert (a.split()[:2], a.split()[-1], b.split()[0]) == (["A", "[CLS]"], "[SEP]", "B")
    assert f"{len(masks)} masks" in first
    outcome = bertdata("stats", datasets[format], "--json", "--workers=1")
    assert outcome.status == 0, outcome.err
    (found,) = json.loads(outcome.out)["datasets"]
    swapped = sum(example.order_label for example in all_rows(datasets["tfrecord"]))
    assert (found["objective"], found["sentence_order"]["swapped"]) == ("sop", swapped)
    assert 0.45 < found["masks"]["kinds"]["mask"]["share"] < 0.95
    expected = hashlib.md5(shards(datasets["tfrecord"])[1].read_bytes()).hexdigest()
    assert bertdata("md5", "--content", path).out.split()[0] == expected


@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("target", FORMATS)
def test_convert_loses_nothing(bertdata, datasets, tmp_path, source, target):
    converted, back = tmp_path / f"shard.{target}", tmp_path / "back.tfrecord"
    outcome = bertdata("convert", shards(datasets[source])[1], converted)
    assert outcome.status == 0, outcome.err
    assert bertdata("convert", converted, back).status == 0
    assert back.read_bytes() == shards(datasets["tfrecord"])[1].read_bytes()


def test_a_model_gets_alberts_names(datasets):
    data = face.open_dataset(str(datasets["hdf5"]))
    assert list(data) == all_rows(datasets["tfrecord"])
    found = data.collator()(list(data)[:4])
    assert {"input_ids", "attention_mask", "token_type_ids", "labels", "sentence_order_label"} == set(found)
    columns = next(data.numpy(batch_size=3, padded=False))
    assert columns["word_starts"].sum() == sum(sum(one.word_starts) for one in list(data)[:3])


def test_bins_of_lengths_hold_the_same_examples(datasets, corpus, small_vocabulary_file, tmp_path):
    assert main(words(corpus, small_vocabulary_file, tmp_path, "--bin-size=16", "--format=hdf5")) == 0
    assert len(shards(tmp_path)) == 12
    assert sorted(map(repr, all_rows(tmp_path))) == sorted(map(repr, all_rows(datasets["tfrecord"])))


@pytest.fixture(scope="module")
def packed(datasets: dict[str, Path], tmp_path_factory: Any) -> Path:
    output: Path = tmp_path_factory.mktemp("packed") / "flat"
    assert main(["pack", str(datasets["parquet"]), "--output", str(output), "--workers=2"]) == 0
    return output


def test_rows_of_the_layout_flat_hold_the_same_examples(bertdata, datasets, packed):
    assert sorted(map(repr, all_rows(packed))) == sorted(map(repr, all_rows(datasets["tfrecord"])))
    found = manifest(packed)
    assert sum(entry["rows"] for entry in found["shards"]) < found["totals"]["examples"]
    assert bertdata("verify-md5", packed, "--content").status == 0
    assert "sentence order" in bertdata("show", shards(packed)[0]).out
    assert "sentence order" in bertdata("stats", packed, "--workers=1").out


@pytest.mark.parametrize("layout", ["habana", "graphcore", "nvidia"])
def test_other_layouts_have_no_word_starts(bertdata, datasets, tmp_path, layout):
    outcome = bertdata("pack", datasets["hdf5"], "--output", tmp_path / "out", "--layout", layout)
    outcome.assert_one_error(2, f"{GROUPS}; the layout flat holds any")


@pytest.mark.parametrize("target", [("--to=lddl",), ("--to=nvidia-mlperf", "--num-shards=2")])
def test_other_programs_containers_have_no_word_starts(bertdata, datasets, tmp_path, target):
    outcome = bertdata("convert", datasets["hdf5"], tmp_path / "out", *target)
    outcome.assert_one_error(2, GROUPS)


@pytest.mark.thorough
def test_a_pipeline_makes_the_same_bytes(datasets, packed, corpus, small_vocabulary_file, tmp_path):
    given = ["--input", *map(str, corpus), "--output", str(tmp_path / "made")]
    given += ["--vocab", str(small_vocabulary_file), *FLAGS, "--format=parquet", "--runner=DirectRunner"]
    assert beam_pipelines.prepare.main(given) == 0
    made = (tmp_path / "made/manifest.json").read_bytes()
    assert made == (datasets["parquet"] / "manifest.json").read_bytes()
    given = [str(tmp_path / "made"), "--output", str(tmp_path / "rows"), "--runner=DirectRunner"]
    assert beam_pipelines.pack.main(given) == 0
    assert (tmp_path / "rows/MD5SUMS").read_bytes() == (packed / "MD5SUMS").read_bytes()


def test_the_python_face_takes_its_settings(corpus, small_vocabulary_file, tmp_path):
    made = face.create(
        str(corpus[0]),
        str(tmp_path),
        vocab=str(small_vocabulary_file),
        objective="sop",
        max_seq_length=64,
        dupe_factor=1,
        ngram=2,
        favor_shorter_ngram=False,
        random_next_sentence=True,
        permutation=True,
        workers=1,
    )
    assert made
    settings = manifest(tmp_path)["settings"]["objective"]
    assert (settings["ngram"], settings["favor_shorter_ngram"], settings["permutation"]) == (2, False, True)


def test_shards_without_masks_are_the_others_with_their_labels_back(
    datasets, corpus, small_vocabulary_file, tmp_path
):
    assert main([*words(corpus, small_vocabulary_file, tmp_path, "--no-masks"), "--workers=1"]) == 0
    assert manifest(tmp_path)["settings"]["objective"]["masks"] is False
    for bare, masked in zip(all_rows(tmp_path), all_rows(datasets["tfrecord"]), strict=True):
        ids = np.array(masked.ids)
        ids[masked.positions] = masked.labels
        assert (bare.ids, bare.positions, bare.word_starts) == (ids.tolist(), [], masked.word_starts)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--ngram=0",), "ngram is 0, expected 1 to 64"),
        (
            ("--max-predictions-per-seq=65",),
            "--max-predictions-per-seq is 65, expected 1 to --max-seq-length (64)",
        ),
        (("--permutation", "--max-predictions-per-seq=1"), "--max-predictions-per-seq is 1, expected 2 to"),
        (("--recipe=mlperf",), "--recipe mlperf goes with the objective of the recipe"),
        (("--blocks=none",), "unknown settings: blocks"),
    ],
)
def test_settings_that_make_no_sense_are_one_line(
    bertdata, corpus, small_vocabulary_file, tmp_path, flags, message
):
    outcome = bertdata(*words(corpus, small_vocabulary_file, tmp_path / "out", *flags))
    outcome.assert_one_error(2, message)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("tokenizer", "mask"), [("bpe-roberta", "<mask>"), ("bpe-modernbert", "[MASK]")])
def test_words_of_a_byte_pair_tokeniser_are_masked_whole(kit, corpus, tmp_path, tokenizer, mask):
    """Where words start is told by place, and both engines make the same of it."""
    pytest.importorskip("tokenizers")
    path = kit / "encoders" / "tokenizers" / f"{tokenizer}.json"
    given = ["create", str(corpus[0]), f"--tokenizer={path}", "--role", f"mask={mask}", *FLAGS, "--workers=1"]
    for engine in ("native", "python"):
        assert main([*given, f"--output={tmp_path / engine}", f"--engine={engine}"]) == 0
    made = (tmp_path / "native" / "MD5SUMS").read_bytes()
    assert made == (tmp_path / "python" / "MD5SUMS").read_bytes()
    found, together = list(face.open_dataset(str(tmp_path / "native"))), 0
    for example in found:
        taken, borders = set(example.positions), {0, example.first_length - 1, len(example.ids) - 1}
        for position in set(range(2, len(example.ids))) - borders - {place + 1 for place in borders}:
            if not example.word_starts[position]:
                assert (position in taken) == (position - 1 in taken)
                together += position in taken
    assert together > 50
