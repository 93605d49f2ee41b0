"""``create --bin-size``: each part's examples in one shard a bin of lengths."""

import json
from pathlib import Path
from typing import Any

import pytest

from bertdata.examples.bins import format_bin_names
from bertdata.shards.containers import open_reader
from tests.support.commands import SMALL, contents

BINS = 3
"""Of 24 ids each, in examples of up to 64."""


def words(corpus: list[Path], vocabulary: Path, out: Path, *more: object) -> list[object]:
    return ["create", *corpus, f"--output={out}", f"--vocab={vocabulary}", *SMALL, *more]


def examples_of(path: Path) -> list[Any]:
    if not path.stat().st_size:  # a TFRecord without records
        return []
    with open_reader(path) as reader:
        return list(reader)


@pytest.fixture
def plain(bertdata, corpus, small_vocabulary_file, tmp_path) -> Path:
    assert bertdata(*words(corpus, small_vocabulary_file, tmp_path / "plain")).status == 0
    return tmp_path / "plain"


@pytest.mark.parametrize("format", ["tfrecord", "hdf5", "parquet"])
def test_each_example_is_in_the_bin_of_its_length_in_the_order_of_its_part(
    bertdata, corpus, small_vocabulary_file, plain, tmp_path, format
):
    out = tmp_path / "binned"
    more = ["--bin-size=24", f"--format={format}"]
    assert bertdata(*words(corpus, small_vocabulary_file, out, *more)).status == 0
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["settings"]["container"]["bin_size"] == 24
    by_name = {shard["name"]: shard for shard in manifest["shards"]}
    assert len(by_name) == BINS * len(corpus)
    for part in corpus:
        whole = examples_of(plain / f"{part.name}.tfrecord")
        for number in range(BINS):
            name = f"{part.name}.bin-{number:02}.{format}"
            found = examples_of(out / name)
            assert found == [example for example in whole if (len(example.ids) - 1) // 24 == number]
            assert found or number == 0
            entry = by_name[name]
            assert entry["input"] == part.name
            assert entry["examples"] == len(found)
            assert entry["tokens"] == sum(len(example.ids) for example in found)
            assert entry["masked_tokens"] == sum(len(example.positions) for example in found)
    assert bertdata("verify-md5", out, "--content").status == 0
    totals = json.loads((plain / "manifest.json").read_text())["totals"]
    assert {**manifest["totals"], "bytes": 0} == {**totals, "bytes": 0}


def test_without_the_flag_the_manifest_does_not_know_it(plain):
    assert "bin_size" not in json.loads((plain / "manifest.json").read_text())["settings"]["container"]


def test_a_size_of_0_is_no_bins(bertdata, corpus, small_vocabulary_file, plain, tmp_path):
    out = tmp_path / "out"
    assert bertdata(*words(corpus, small_vocabulary_file, out, "--bin-size=0")).status == 0
    assert contents(out) == contents(plain)
    assert "0 (default): do not split" in " ".join(bertdata("create", "--help").out.split())


def test_bytes_are_the_same_for_any_number_of_workers(bertdata, corpus, small_vocabulary_file, tmp_path):
    for workers in (1, 2):
        more = ["--bin-size=32", f"--workers={workers}"]
        assert bertdata(*words(corpus, small_vocabulary_file, tmp_path / str(workers), *more)).status == 0
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


def test_a_shuffled_corpus_is_cut_too(bertdata, corpus, small_vocabulary_file, tmp_path):
    shuffled = ["--shuffle=global", "--num-shards=2"]
    for name, more in (("plain", []), ("binned", ["--bin-size=32"])):
        out = tmp_path / name
        assert bertdata(*words(corpus, small_vocabulary_file, out, *shuffled, *more)).status == 0
    whole = examples_of(tmp_path / "plain" / "shard-00001-of-00002.tfrecord")
    bins = [tmp_path / "binned" / f"shard-00001-of-00002.bin-0{number}.tfrecord" for number in range(2)]
    assert [examples_of(path) for path in bins] == [
        [example for example in whole if (len(example.ids) - 1) // 32 == number] for number in range(2)
    ]


def test_a_missing_bin_is_made_again_and_the_rest_is_kept(bertdata, corpus, small_vocabulary_file, tmp_path):
    out = tmp_path / "out"
    command = words(corpus, small_vocabulary_file, out, "--bin-size=24")
    assert bertdata(*command).status == 0
    expected = contents(out)
    names = [f"{corpus[1].name}.bin-{number:02}.tfrecord" for number in range(BINS)]
    (out / names[1]).unlink()
    told = bertdata(*command, "--dry-run").out
    assert f"make  {names[1]}" in told
    assert f"make  {names[0]}" in told
    assert "its part's other bins are made anew" in told
    assert f"keep  {corpus[0].name}.bin-00.tfrecord" in told
    outcome = bertdata(*command)
    assert outcome.status == 0
    assert contents(out) == expected
    assert f"made {names[0]}" in outcome.err
    assert f"kept {corpus[0].name}.bin-00.tfrecord" in outcome.err


def test_another_bin_size_is_another_dataset(bertdata, corpus, small_vocabulary_file, plain):
    bertdata(*words(corpus, small_vocabulary_file, plain, "--bin-size=24")).assert_one_error(
        2, "made with other settings: bin_size None, now 24"
    )


@pytest.mark.parametrize("size", [-1, 64, 512])
def test_a_size_that_makes_no_bins_is_refused(bertdata, corpus, small_vocabulary_file, tmp_path, size):
    bertdata(*words(corpus, small_vocabulary_file, tmp_path / "out", f"--bin-size={size}")).assert_one_error(
        2, f"--bin-size is {size}, expected 0 (no bins) to 63, below --max-seq-length"
    )
    assert not (tmp_path / "out").exists()


def test_a_dataset_in_bins_is_opened_as_any_other(bertdata, corpus, small_vocabulary_file, plain, tmp_path):
    import bertdata as face

    made = face.create(
        [str(part) for part in corpus],
        tmp_path / "out",
        vocab=small_vocabulary_file,
        max_seq_length=64,
        max_predictions_per_seq=10,
        dupe_factor=1,
        bin_size=16,
        workers=1,
    )
    assert len(made.datasets[0].manifest.shards) == 4 * len(corpus)
    opened = face.open_dataset(tmp_path / "out")
    assert len(opened) == len(list(opened)) == len(face.open_dataset(plain))
    assert [shard for shard in made.datasets[0].manifest.shards if not shard.examples]  # and is not opened
    assert bertdata("stats", tmp_path / "out", "--workers=1").status == 0


def test_names_of_bins():
    assert format_bin_names("part", 64, 0) == ("part",)
    assert format_bin_names("part", 64, 24) == ("part.bin-00", "part.bin-01", "part.bin-02")
    assert format_bin_names("part", 512, 64)[-1] == "part.bin-07"
    assert len(format_bin_names("part", 512, 1)) == 512
