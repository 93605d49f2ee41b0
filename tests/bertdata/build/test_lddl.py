"""``convert --to lddl``: words in LDDL's columns, bins and file names; and back to the same examples."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet as parquet
import pytest

from bertdata.shards.containers import open_reader
from tests.support.commands import SMALL, contents

TYPES = {
    "A": pyarrow.string(),
    "B": pyarrow.string(),
    "is_random_next": pyarrow.bool_(),
    "num_tokens": pyarrow.uint16(),
    "masked_lm_positions": pyarrow.binary(),
    "masked_lm_labels": pyarrow.string(),
}


def examples_of(directory: Path) -> list[Any]:
    found: list[Any] = []
    for path in sorted(directory.glob("*.tfrecord")):
        with open_reader(path) as reader:
            found.extend(reader)
    return found


def row_of(example: Any, words: list[str]) -> dict[str, Any]:
    """LDDL's row of an example, plainly."""
    array = io.BytesIO()
    np.save(array, np.array(example.positions, dtype=np.uint16))
    return {
        "A": " ".join(words[number] for number in example.ids[1 : example.first_length - 1]),
        "B": " ".join(words[number] for number in example.ids[example.first_length : -1]),
        "is_random_next": bool(example.next_label),
        "num_tokens": len(example.ids),
        "masked_lm_positions": array.getvalue(),
        "masked_lm_labels": " ".join(words[number] for number in example.labels),
    }


@pytest.fixture
def words(training_set: Path) -> list[str]:
    return (training_set / "vocab.txt").read_text(encoding="utf-8").splitlines()


def convert(bertdata: Any, source: Path, out: Path, *more: str) -> Path:
    outcome = bertdata("convert", source, out, "--to=lddl", "--workers=1", *more)
    assert outcome.status == 0, outcome.err
    return out


def test_rows_are_those_that_lddl_has(bertdata, training_set, words, tmp_path):
    out = convert(bertdata, training_set, tmp_path / "out", "--num-shards=4")
    tables = [parquet.ParquetFile(out / f"part.{number}.parquet").read() for number in range(4)]
    for table in tables:
        assert dict(zip(table.schema.names, table.schema.types, strict=True)) == TYPES
    rows = [row for table in tables for row in table.to_pylist()]
    assert rows == [row_of(example, words) for example in examples_of(training_set)]
    counts = json.loads((out / ".num_samples.json").read_text())
    assert counts == {f"part.{number}.parquet": table.num_rows for number, table in enumerate(tables)}
    assert bertdata("verify-md5", out, "--content").status == 0
    (out / ".num_samples.json").write_text("{}")
    assert ".num_samples.json: wrong md5: found" in bertdata("verify-md5", out).out


def test_bins_are_files_with_their_number(bertdata, training_set, words, tmp_path):
    out = convert(bertdata, training_set, tmp_path / "out", "--bin-size=16", "--num-shards=2")
    names = [f"part.{shard}.parquet_{which}" for shard in range(2) for which in range(4)]
    assert sorted(path.name for path in out.glob("part.*")) == sorted(names)
    found = []
    for name in names:
        table = parquet.ParquetFile(out / name).read()
        assert table.schema.field("bin_id").type == pyarrow.int64()
        for row in table.to_pylist():
            assert row.pop("bin_id") == (row["num_tokens"] - 1) // 16 == int(name[-1])
            found.append(row)
    expected = [row_of(example, words) for example in examples_of(training_set)]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert set(json.loads((out / ".num_samples.json").read_text())) == set(names)
    assert bertdata("verify-md5", out, "--content").status == 0
    assert bertdata("stats", out, "--workers=1").status == 0
    assert sum(path.stat().st_size for path in (out / "lengths").iterdir()) == 2 * len(expected)


def test_a_file_goes_back_to_the_same_examples(bertdata, training_set, tmp_path):
    import bertdata as face

    out = convert(bertdata, training_set, tmp_path / "out", "--num-shards=1")
    assert list(face.open_dataset(out)) == examples_of(training_set)
    source, back = out / "part.0.parquet", tmp_path / "back.tfrecord"
    assert bertdata("convert", source, back).status == 0
    with open_reader(back) as reader:
        assert list(reader) == examples_of(training_set)
    first = sorted(training_set.glob("*.tfrecord"))[0]
    assert bertdata("show", source, "--index=3").out == bertdata("show", first, "--index=3").out


def test_a_vocabulary_other_than_the_manifests_gives_no_ids(bertdata, training_set, words, tmp_path):
    import bertdata as face
    from bertdata.errors import ShardError

    out = convert(bertdata, training_set, tmp_path / "out", "--num-shards=1")
    used = examples_of(training_set)[0].ids
    words[used[1]], words[used[2]] = words[used[2]], words[used[1]]
    (out / "vocab.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    told = f"{out / 'vocab.txt'}: md5 "
    with pytest.raises(ShardError, match=f"^{told}.*, the vocabulary that .*part.0.parquet was made with$"):
        list(face.open_dataset(out))
    single = bertdata("convert", out / "part.0.parquet", tmp_path / "back.tfrecord")
    single.assert_one_error(1, told, "part.0.parquet was made with")
    words = ["--to=nvidia-mlperf", "--num-shards=2", "--workers=1", f"--vocab={training_set / 'vocab.txt'}"]
    whole = bertdata("convert", out, tmp_path / "back", *words)
    whole.assert_one_error(1, told, "part.0.parquet was made with")
    assert not (tmp_path / "back.tfrecord").exists()


def theirs(training_set: Path, words: list[str], path: Path, **changes: Any) -> Path:
    """A file as LDDL writes one, without our metadata; changes: of the second row."""
    rows = [row_of(example, words) for example in examples_of(training_set)[:5]]
    rows[1].update(changes)
    names = [name for name in TYPES if name in rows[0]]
    table = pyarrow.table({name: pyarrow.array([row[name] for row in rows], TYPES[name]) for name in names})
    parquet.write_table(table, path)
    return path


def test_a_file_of_lddl_itself_is_read_with_its_vocabulary(bertdata, training_set, words, tmp_path):
    path, back = theirs(training_set, words, tmp_path / "part.0.parquet_3"), tmp_path / "back.tfrecord"
    bertdata("convert", path, back).assert_one_error(1, "part.0.parquet_3: holds words, as LDDL's shards do")
    assert bertdata("convert", path, back, "--vocab", training_set / "vocab.txt").status == 0
    with open_reader(back) as reader:
        assert list(reader) == examples_of(training_set)[:5]
        assert (reader.layout.max_seq_length, reader.layout.max_predictions_per_seq) == (512, 80)
    shown = bertdata("show", path, "--vocab", training_set / "vocab.txt")
    assert shown.status == 0


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"A": "zzzzqqq of"}, "record 1: 'zzzzqqq' is no word of the vocabulary"),
        ({"num_tokens": 7}, "tokens, num_tokens is 7"),
        (
            {"masked_lm_positions": b"\x93NUMPY"},
            "masked_lm_positions are no NumPy file of positions",
        ),
        ({"masked_lm_labels": ""}, "record 1: 0 masked labels, expected "),
        ({"B": None}, "record 1: no B, expected a value"),
    ],
)
def test_a_row_that_cannot_be_read_is_named(bertdata, training_set, words, tmp_path, changes, told):
    path = theirs(training_set, words, tmp_path / "theirs.parquet", **changes)
    flag = f"--vocab={training_set / 'vocab.txt'}"
    bertdata("convert", path, tmp_path / "back.tfrecord", flag).assert_one_error(1, "theirs.parquet", told)


def test_sizes_that_are_no_numbers_are_refused(bertdata, training_set, words, tmp_path):
    path = theirs(training_set, words, tmp_path / "part.0.parquet")
    table = parquet.read_table(path).replace_schema_metadata({"bertdata.max_seq_length": "long"})
    parquet.write_table(table, path)
    flag = f"--vocab={training_set / 'vocab.txt'}"
    bertdata("convert", path, tmp_path / "back.tfrecord", flag).assert_one_error(
        1, "bertdata.max_seq_length is 'long' in the metadata, expected a number"
    )


def test_examples_without_masks_have_no_columns_of_masks(bertdata, corpus, small_vocabulary_file, tmp_path):
    source = tmp_path / "unmasked"
    words = ["create", corpus[0], f"--output={source}", f"--vocab={small_vocabulary_file}", *SMALL]
    assert bertdata(*words, "--no-masks").status == 0
    out = convert(bertdata, source, tmp_path / "out")
    assert parquet.ParquetFile(out / "part.0.parquet").schema_arrow.names == list(TYPES)[:4]
    assert bertdata("verify-md5", out, "--content").status == 0


def test_bytes_are_the_same_for_any_number_of_workers(bertdata, training_set, tmp_path):
    words = ["--to=lddl", "--bin-size=32"]
    for workers in (1, 2):
        out = tmp_path / str(workers)
        assert bertdata("convert", training_set, out, *words, f"--workers={workers}").status == 0
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


def test_what_is_missing_is_made_again(bertdata, training_set, tmp_path):
    out = convert(bertdata, training_set, tmp_path / "out", "--bin-size=32", "--num-shards=3")
    expected = contents(out)
    (out / "part.1.parquet_0").unlink()
    outcome = bertdata(
        "convert", training_set, out, "--to=lddl", "--bin-size=32", "--num-shards=3", "--workers=1"
    )
    assert "made part.1.parquet_0" in outcome.err
    assert outcome.err.count("kept part.") == 2
    assert contents(out) == expected


def test_settings_that_make_no_sense_are_refused(bertdata, training_set, tmp_path):
    words = ["convert", training_set, tmp_path / "out", "--to=lddl"]
    bertdata(*words, "--shuffled").assert_one_error(2, "shuffled goes with nvidia-mlperf")
    bertdata(*words, "--bin-size=64").assert_one_error(2, "--bin-size is 64, expected 1 to 63")
    assert not (tmp_path / "out").exists()


def test_a_vocabulary_that_is_not_at_hand_is_asked_for(bertdata, training_set, tmp_path, monkeypatch):
    import shutil

    monkeypatch.setenv("BERTDATA_CACHE", str(tmp_path / "cache"))
    shutil.copytree(training_set, tmp_path / "source")
    (tmp_path / "source" / "vocab.txt").unlink()
    words = ["convert", tmp_path / "source", tmp_path / "out", "--to=lddl", "--workers=1"]
    bertdata(*words).assert_one_error(1, "its vocabulary, md5", "give --vocab FILE")
    assert bertdata(*words, "--vocab", training_set / "vocab.txt").status == 0
