"""MDS from ``create`` and ``convert --to mds``: bytes, index, workers, resume, and reading it back."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bertdata as face
from bertdata.build.conversion.settings import ConversionSettings
from bertdata.errors import SettingsError
from bertdata.shards.containers import open_reader
from bertdata.shards.mds.compression import decompress
from bertdata.shards.mds.directory import read_directory, write_directory
from bertdata.shards.mds.index import ShardForm, parse_index
from bertdata.steps.convert import convert
from tests.support.commands import contents

FLAGS = ("--objective=mlm", "--no-masks", "--max-seq-length=64")


def create(bertdata: Any, corpus: list[Path], vocabulary: Path, out: Path, *flags: str) -> Path:
    outcome = bertdata("create", *corpus, f"--output={out}", f"--vocab={vocabulary}", *flags, "--workers=1")
    assert outcome.status == 0, outcome.err
    return out


@pytest.fixture
def blocks(bertdata: Any, corpus: list[Path], small_vocabulary_file: Path, tmp_path: Path) -> Path:
    """The sample corpus as unmasked blocks in TFRecord."""
    return create(bertdata, corpus, small_vocabulary_file, tmp_path / "blocks", *FLAGS)


@pytest.fixture
def created(bertdata: Any, corpus: list[Path], small_vocabulary_file: Path, tmp_path: Path) -> Path:
    """The same as MDS, a shard a part."""
    return create(bertdata, corpus, small_vocabulary_file, tmp_path / "created", *FLAGS, "--format=mds")


def samples_of(dataset: Path, *, with_len: bool = False) -> list[dict[str, Any]]:
    """The examples of a dataset of TFRecords as samples, with their names."""
    found = []
    for path in sorted(dataset.glob("*.tfrecord")):
        with open_reader(path) as reader:
            for number, example in enumerate(reader):
                sample = {"id": f"{path.stem}-{number}", "input_ids": np.array(example.ids, np.uint16)}
                found.append(sample | ({"len": len(example.ids)} if with_len else {}))
    return found


def plain(samples: Any) -> list[list[Any]]:
    return [[sample["id"], sample["input_ids"].tolist(), sample.get("len")] for sample in samples]


def content(dataset: Path) -> list[str]:
    return [shard["content_md5"] for shard in json.loads((dataset / "manifest.json").read_text())["shards"]]


def test_created_shards_hold_the_examples_of_other_containers(bertdata, blocks, created):
    assert plain(read_directory(str(created))) == plain(samples_of(blocks))
    assert content(created) == content(blocks)
    index = parse_index((created / "index.json").read_bytes(), "index")
    assert [entry.raw.basename for entry in index] == sorted(path.name for path in created.glob("*.mds"))
    assert {entry.form.size_limit for entry in index} == {None}
    for words in (["verify-md5", created], ["verify-md5", created, "--content"], ["stats", created]):
        assert bertdata(*words).status == 0
    first = sorted(created.glob("*.mds"))[0]
    assert bertdata("md5", "--content", first).out.startswith(content(blocks)[0])
    shown = bertdata("show", first).out
    assert "[CLS]" in shown
    assert bertdata("show", sorted(blocks.glob("*.tfrecord"))[0]).out == shown


def test_word_starts_of_a_tokenizer_json_are_left_out(bertdata, corpus, tmp_path):
    parts = [str(path) for path in corpus]
    tokenizer = tmp_path / "tokenizer.json"
    trained = bertdata("train-vocab", *parts, f"--output={tokenizer}", "--size=300", "--kind=bpe")
    assert trained.status == 0, trained.err
    made = {}
    for format in ("tfrecord", "mds"):
        made[format] = tmp_path / format
        words = ["create", *parts, f"--output={made[format]}", f"--tokenizer={tokenizer}", *FLAGS]
        assert bertdata(*words, f"--format={format}").status == 0
    converted = tmp_path / "converted"
    assert bertdata("convert", made["tfrecord"], converted, "--to=mds").status == 0
    assert face.open_dataset(str(made["tfrecord"])).layout.objective == "mlm_word_starts"
    assert face.open_dataset(str(converted)).layout.objective == "mlm"
    samples = [sample["input_ids"].tolist() for sample in read_directory(str(converted))]
    assert samples == [sample["input_ids"].tolist() for sample in read_directory(str(made["mds"]))]
    assert samples == [list(example.ids) for example in face.open_dataset(str(made["tfrecord"]))]
    assert bertdata("verify-md5", converted, "--content").status == 0


def test_the_same_bytes_for_any_number_of_workers_and_after_a_crash(
    bertdata, corpus, small_vocabulary_file, created
):
    other = created.parent / "other"
    words = [
        "create",
        *corpus,
        f"--output={other}",
        f"--vocab={small_vocabulary_file}",
        *FLAGS,
        "--format=mds",
    ]
    assert bertdata(*words, "--workers=2").status == 0
    assert contents(other) == contents(created)
    first, second = sorted(other.glob("*.mds"))[:2]
    first.write_bytes(b"damaged")
    second.unlink()
    (other / "index.json").unlink()
    assert bertdata(*words, "--workers=1").status == 0
    assert contents(other) == contents(created)


@pytest.mark.parametrize("with_len", [False, True])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_converted_directory_is_that_of_one_writer(bertdata, blocks, tmp_path, with_len, workers):
    out, expected = tmp_path / "out", tmp_path / "expected"
    words = ["convert", blocks, out, "--to=mds", "--size-limit=6000", "--hashes=sha512,md5"]
    outcome = bertdata(*words, f"--workers={workers}", *(["--len"] if with_len else []))
    assert outcome.status == 0, outcome.err
    columns = {"input_ids": "ndarray:uint16", "id": "str", **({"len": "int"} if with_len else {})}
    expected.mkdir()
    form = ShardForm.from_columns(columns, size_limit=6000, hashes=("md5", "sha512"))
    write_directory(str(expected), form, samples_of(blocks, with_len=with_len))
    files = sorted(path.name for path in expected.iterdir())
    assert len(files) > 3
    for name in files:
        assert (out / name).read_bytes() == (expected / name).read_bytes(), name
    assert len(list(out.glob("*.mds"))) == len(files) - 1
    assert bertdata("verify-md5", out, "--content").status == 0
    assert "mlm" in bertdata("verify-md5", out, "--chain").out


@pytest.mark.parametrize("kind", ["zstd:9", "gz", "bz2:1", "br:5", "snappy"])
@pytest.mark.thorough_after_first
def test_compressed_shards_hold_the_plain_ones(bertdata, blocks, tmp_path, kind):
    plain_out, out = tmp_path / "plain", tmp_path / "out"
    assert bertdata("convert", blocks, plain_out, "--to=mds", "--size-limit=6000", "--workers=1").status == 0
    words = ["convert", blocks, out, "--to=mds", "--size-limit=6000", "--workers=1", f"--compression={kind}"]
    assert bertdata(*words, "--hashes=xxh64").status == 0
    ending = kind.split(":")[0]
    shards = sorted(out.glob("*.mds.*"))
    assert len(shards) > 1
    assert {path.suffix for path in shards} == {f".{ending}"}
    assert (
        plain(read_directory(str(out))) == plain(read_directory(str(plain_out))) == plain(samples_of(blocks))
    )
    entries = parse_index((out / "index.json").read_bytes(), "index")
    for shard, entry in zip(shards, entries, strict=True):
        assert entry.raw.bytes == len(decompress(shard.read_bytes(), ending, shard.name, 1 << 20)) <= 6000
        assert set(entry.raw.hashes) == set(entry.stored.hashes) == {"xxh64"}
    assert bertdata("verify-md5", out, "--content").status == 0
    bertdata("convert", out, tmp_path / "all.tfrecord")
    assert (tmp_path / "all.tfrecord").read_bytes() == b"".join(
        path.read_bytes() for path in sorted(blocks.glob("*.tfrecord"))
    )


def test_a_conversion_keeps_what_is_finished(bertdata, blocks, tmp_path):
    out = tmp_path / "out"
    words = ["convert", blocks, out, "--to=mds", "--size-limit=6000", "--compression=zstd", "--workers=1"]
    assert bertdata(*words, "--hashes=sha1").status == 0
    before = contents(out)
    (out / "shard.00001.mds.zstd").unlink()
    (out / "index.json").write_text("{}")
    again = bertdata(*words, "--hashes=sha1")
    assert again.status == 0
    assert "kept shard.00000.mds.zstd" in again.err
    assert "made shard.00001.mds.zstd" in again.err
    assert contents(out) == before
    bertdata(*words).assert_one_error(2, "was made with other settings", "hashes")


def test_an_index_that_was_changed_is_a_fault(bertdata, blocks, tmp_path):
    out = tmp_path / "out"
    assert bertdata("convert", blocks, out, "--to=mds", "--hashes=sha1", "--workers=1").status == 0
    text = (out / "index.json").read_text()
    digest = json.loads(text)["shards"][0]["raw_data"]["hashes"]["sha1"]
    (out / "index.json").write_text(text.replace(digest, "0" * 40))
    assert "index.json: differs" in bertdata("verify-md5", out).out
    (out / "index.json").unlink()
    assert "index.json: missing" in bertdata("verify-md5", out).out


def test_datasets_of_mds_are_opened_packed_and_converted(bertdata, blocks, created, tmp_path):
    assert (
        bertdata("convert", created, tmp_path / "cut", "--to=mds", "--size-limit=6000", "--workers=1").status
        == 0
    )
    expected = [example.ids for example in face.open_dataset(blocks)]
    for place in (created, tmp_path / "cut"):
        found = face.open_dataset(place)
        assert found.layout == face.open_dataset(blocks).layout
        assert [example.ids for example in found] == expected
    assert bertdata("pack", created, f"--output={tmp_path / 'packed'}", "--workers=1").status == 0
    assert (
        bertdata(
            "convert", blocks, tmp_path / "direct", "--to=mds", "--size-limit=6000", "--workers=1"
        ).status
        == 0
    )
    for name in ("shard.00000.mds", "index.json"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "direct" / name).read_bytes()
    masked = next(iter(face.open_dataset(created).masked(seed=3)))
    assert masked.positions


@pytest.mark.parametrize(
    ("columns", "dtype"),
    [
        ({"input_ids": "ndarray:uint16", "id": "str", "len": "int"}, "uint16"),
        ({"input_ids": "ndarray:uint32", "id": "str"}, "uint32"),
        ({"input_ids": "ndarray", "id": "str"}, "uint16"),
        ({"tokens": "ndarray:int32", "metadata": "json"}, "int32"),
    ],
    ids=["ModernBERT", "Ettin", "free", "EuroBERT"],
)
def test_directories_of_other_tools_are_opened_unverified(bertdata, tmp_path, columns, dtype):
    rows = [list(range(5, 5 + 7 * number)) for number in range(1, 40)]
    place = tmp_path / "in"
    place.mkdir()
    ids = next(name for name in columns if name in ("input_ids", "tokens"))
    samples = [
        {ids: np.array(row, dtype), "id": f"x-{number}", "len": len(row), "metadata": {"n": number}}
        for number, row in enumerate(rows)
    ]
    write_directory(str(place), ShardForm.from_columns(columns, size_limit=2000, compression="zstd"), samples)
    dataset = face.open_dataset(place, unverified=True, objective="mlm")
    assert [example.ids for example in dataset] == rows
    assert dataset.layout.max_seq_length == 7 * 39
    assert next(dataset.numpy(batch_size=3))["input_ids"].shape == (3, 7 * 39)
    assert bertdata("convert", place, tmp_path / "out.tfrecord").status == 0
    with open_reader(tmp_path / "out.tfrecord", objective="mlm") as reader:
        assert [example.ids for example in reader] == rows
    assert f"<{rows[2][0]}> <{rows[2][1]}>" in bertdata("show", place, "--index=2").out
    assert "39" in bertdata("stats", place, "--workers=1").out


def test_wide_ids_for_large_vocabularies(bertdata, corpus, small_vocabulary_file, tmp_path):
    words = small_vocabulary_file.read_text(encoding="utf-8").splitlines()
    words += [f"filler{number}" for number in range((1 << 16) + 1 - len(words))]
    (tmp_path / "large.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    place = create(bertdata, corpus[:1], tmp_path / "large.txt", tmp_path / "wide", *FLAGS, "--format=mds")
    index = parse_index((place / "index.json").read_bytes(), "index")
    assert index[0].form.types == ("str", "ndarray:uint32")
    assert next(read_directory(str(place)))["input_ids"].dtype == np.uint32
    assert bertdata("convert", place, tmp_path / "out", "--to=mds", "--workers=1").status == 0
    assert next(read_directory(str(tmp_path / "out")))["input_ids"].dtype == np.uint32


def test_examples_with_more_than_ids_are_refused(
    bertdata, corpus, small_vocabulary_file, training_set, tmp_path
):
    words = [
        "create",
        *corpus,
        f"--output={tmp_path / 'out'}",
        f"--vocab={small_vocabulary_file}",
        "--format=mds",
    ]
    bertdata(*words).assert_one_error(
        2, "mds holds ids alone; objective bert has", "--objective mlm --no-masks"
    )
    bertdata(*words, "--objective=mlm").assert_one_error(2, "mds holds ids without masks", "--no-masks")
    outcome = bertdata("convert", training_set, tmp_path / "out", "--to=mds")
    outcome.assert_one_error(2, "holds ids alone", "--objective mlm --no-masks")
    assert not (tmp_path / "out").exists()
    masked = create(bertdata, corpus, small_vocabulary_file, tmp_path / "masked", "--objective=mlm")
    bertdata("convert", masked, tmp_path / "out", "--to=mds").assert_one_error(2, "holds ids without masks")
    first = sorted(masked.glob("*.tfrecord"))[0]
    outcome = bertdata("convert", first, tmp_path / "out.mds")
    outcome.assert_one_error(1, "record 0: has masks, expected ids alone", "--no-masks")


def test_flags_of_mds_go_with_mds(bertdata, blocks, tmp_path):
    out = tmp_path / "out"
    words = ["convert", blocks, out, "--to=lddl"]
    bertdata(*words, "--len").assert_one_error(2, "len goes with mds")
    bertdata(*words, "--size-limit=9").assert_one_error(2, "--size-limit goes with mds")
    words = ["convert", blocks, out, "--to=mds"]
    bertdata(*words, "--num-shards=3").assert_one_error(2, "--num-shards does not go with mds")
    bertdata(*words, "--size-limit=100").assert_one_error(2, "the first sample alone makes a shard of")
    # Offsets in a shard have 32 bits.
    beyond = "--size-limit is 4294967296, expected 1 to 4294967295"
    bertdata(*words, "--size-limit=4294967296").assert_one_error(2, beyond)
    bertdata(*words, "--compression=zip").assert_one_error(2, "unknown compression 'zip', expected one of")
    bertdata(*words, "--compression=gz:10").assert_one_error(2, "level 10, expected 0 to 9")
    bertdata(*words, "--hashes=crc").assert_one_error(2, "unknown hash 'crc', expected")
    bertdata("convert", blocks, out, "--len").assert_one_error(2, "--len goes with --to")
    shutil.rmtree(out, ignore_errors=True)
    bertdata("convert", blocks, tmp_path / "o.tfrecord").assert_one_error(
        2, "is a directory, expected a file"
    )


@pytest.mark.parametrize("limit", [1, 400, (1 << 32) - 1])
def test_a_shard_may_be_as_large_as_its_offsets_can_count(limit: int) -> None:
    assert ConversionSettings(to="mds", size_limit=limit).size_limit == limit


@pytest.mark.parametrize("limit", [0, -1, 1 << 32, 1 << 33])
def test_other_limits_of_a_shards_size_are_refused(limit: int) -> None:
    with pytest.raises(SettingsError, match=f"size_limit is {limit}, expected 1 to 4294967295"):
        ConversionSettings(to="mds", size_limit=limit)


def test_a_conversion_has_no_column_of_lengths_unless_it_is_asked_for(blocks: Path, tmp_path: Path) -> None:
    for name, given in {"usual": {}, "with": {"with_len": True}}.items():
        convert(blocks, tmp_path / name, to="mds", workers=1, **given)
        (first, *_) = read_directory(str(tmp_path / name))
        assert ("len" in first) == (name == "with")
