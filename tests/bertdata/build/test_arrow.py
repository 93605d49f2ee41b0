"""``convert --to arrow``: a directory that ``datasets`` reads, and back to the same examples."""

import json
from pathlib import Path
from typing import Any

import pyarrow
import pytest

import bertdata as face
from tests.support.commands import SMALL, contents

datasets = pytest.importorskip("datasets")

IGNORED = -100
"""The label of an id that is not masked."""


def convert(bertdata: Any, source: Path, out: Path, *more: str) -> Path:
    outcome = bertdata("convert", source, out, "--to=arrow", "--workers=1", *more)
    assert outcome.status == 0, outcome.err
    return out


@pytest.fixture
def unmasked_blocks(bertdata, corpus, small_vocabulary_file, tmp_path) -> Path:
    out = tmp_path / "blocks"
    words = ["create", corpus[0], f"--output={out}", f"--vocab={small_vocabulary_file}", *SMALL]
    assert bertdata(*words, "--objective=mlm", "--no-masks").status == 0
    return out


def test_unmasked_blocks_have_the_two_columns_of_neobert(bertdata, unmasked_blocks, tmp_path):
    out = convert(bertdata, unmasked_blocks, tmp_path / "out", "--num-shards=3")
    found = datasets.load_from_disk(str(out))
    assert found.features == {
        "input_ids": datasets.List(datasets.Value("int32")),
        "attention_mask": datasets.List(datasets.Value("bool")),
    }
    examples = list(face.open_dataset(unmasked_blocks))
    assert found["input_ids"][:] == [example.ids for example in examples]
    assert found["attention_mask"][:] == [[True] * len(example.ids) for example in examples]
    assert [path.name for path in sorted(out.glob("*.arrow"))] == [
        f"data-0000{number}-of-00003.arrow" for number in range(3)
    ]


def labels_of(example: Any) -> list[int]:
    found = [IGNORED] * len(example.ids)
    for position, label in zip(example.positions, example.labels, strict=True):
        found[position] = label
    return found


def test_pairs_have_segments_and_labels_too(bertdata, training_set, tmp_path):
    out = convert(bertdata, training_set, tmp_path / "out", "--num-shards=1")
    rows = datasets.load_from_disk(str(out))[:]
    examples = list(face.open_dataset(training_set))
    assert rows == {
        "input_ids": [example.ids for example in examples],
        "attention_mask": [[True] * len(example.ids) for example in examples],
        "token_type_ids": [
            [0] * example.first_length + [1] * (len(example.ids) - example.first_length)
            for example in examples
        ],
        "labels": [labels_of(example) for example in examples],
        "next_sentence_label": [example.next_label for example in examples],
    }


def test_a_converted_dataset_holds_the_same_examples(
    bertdata, training_set, block_set, unmasked_blocks, tmp_path
):
    for number, source in enumerate((training_set, block_set, unmasked_blocks)):
        out = convert(bertdata, source, tmp_path / f"out{number}", "--num-shards=2")
        assert list(face.open_dataset(out)) == list(face.open_dataset(source))
        assert bertdata("verify-md5", out, "--content").status == 0
        assert bertdata("stats", out, "--workers=1").status == 0


def test_a_file_goes_back_to_another_container(bertdata, block_set, tmp_path):
    out = convert(bertdata, block_set, tmp_path / "out", "--num-shards=1")
    source, back = out / "data-00000-of-00001.arrow", tmp_path / "back.tfrecord"
    assert bertdata("convert", source, back).status == 0
    assert list(face.open_dataset(back, unverified=True)) == list(face.open_dataset(block_set))
    first = sorted(block_set.glob("*.tfrecord"))[0]
    assert bertdata("show", source, "--index=3").out == bertdata("show", first, "--index=3").out


def test_the_json_beside_the_files_is_verified(bertdata, block_set, tmp_path):
    out = convert(bertdata, block_set, tmp_path / "out")
    (out / "state.json").write_text("{}")
    assert "state.json: wrong md5: found" in bertdata("verify-md5", out).out


def test_bytes_are_the_same_for_any_number_of_workers(bertdata, block_set, tmp_path):
    for workers in (1, 2):
        out = tmp_path / str(workers)
        assert bertdata("convert", block_set, out, "--to=arrow", f"--workers={workers}").status == 0
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


def test_what_is_missing_is_made_again(bertdata, block_set, tmp_path):
    out = convert(bertdata, block_set, tmp_path / "out", "--num-shards=3")
    expected = contents(out)
    (out / "data-00001-of-00003.arrow").unlink()
    outcome = bertdata("convert", block_set, out, "--to=arrow", "--num-shards=3", "--workers=1")
    assert "made data-00001-of-00003.arrow" in outcome.err
    assert outcome.err.count("kept data-") == 2
    assert contents(out) == expected


def test_the_fingerprint_is_that_of_the_examples(bertdata, block_set, training_set, tmp_path):
    def fingerprint(source: Path, name: str) -> str:
        out = convert(bertdata, source, tmp_path / name, "--num-shards=1")
        return str(json.loads((out / "state.json").read_text())["_fingerprint"])

    found = [fingerprint(block_set, "one"), fingerprint(block_set, "two"), fingerprint(training_set, "other")]
    assert found[0] == found[1] != found[2]
    assert all(len(one) == 16 and int(one, 16) for one in found)


def test_a_dataset_that_datasets_saved_is_converted(bertdata, small_vocabulary_file, tmp_path):
    rows = [[2, 7, 9, 3], [2, 5, 3], [2, 11, 12, 13, 14, 3]]
    saved = tmp_path / "saved"
    datasets.Dataset.from_dict({"input_ids": rows}).save_to_disk(str(saved), num_shards=2)
    out = tmp_path / "out"
    words = [
        "--to=arrow",
        "--unverified",
        f"--vocab={small_vocabulary_file}",
        "--objective=mlm",
        "--workers=1",
    ]
    assert bertdata("convert", saved, out, *words).status == 0
    assert [example.ids for example in face.open_dataset(out)] == rows
    assert "6 to    6             1" in bertdata("stats", saved, "--objective=mlm", "--workers=1").out
    table = pyarrow.ipc.open_stream((out / "data-00000-of-00002.arrow").read_bytes()).read_all()
    assert table.schema.field("input_ids").type == pyarrow.list_(pyarrow.int32())


@pytest.mark.parametrize("masked", [True, False])
def test_files_without_a_manifest_keep_their_masks_if_they_have_any(
    masked, bertdata, block_set, unmasked_blocks, small_vocabulary_file, tmp_path
):
    source, files = block_set if masked else unmasked_blocks, tmp_path / "files"
    files.mkdir()
    for path in source.glob("*.tfrecord"):
        (files / path.name).write_bytes(path.read_bytes())
    flags = ["--unverified", f"--vocab={small_vocabulary_file}", "--num-shards=1"]
    out = convert(bertdata, files, tmp_path / "out", *flags)
    assert list(face.open_dataset(out)) == list(face.open_dataset(source))
    columns = datasets.load_from_disk(str(out)).column_names
    assert columns == ["input_ids", "attention_mask", *(["labels"] if masked else [])]


def test_packed_rows_are_refused(bertdata, training_set, tmp_path):
    packed = tmp_path / "packed"
    assert bertdata("pack", training_set, f"--output={packed}", "--workers=1").status == 0
    words = ["convert", packed, tmp_path / "out", "--to=arrow", "--workers=1"]
    bertdata(*words).assert_one_error(2, "holds packed rows")
    bertdata("convert", training_set, tmp_path / "out", "--to=arrow", "--bin-size=64").assert_one_error(
        2, "goes with lddl"
    )
