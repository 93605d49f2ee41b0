"""``convert --to nvidia-mlperf``: examples in NVIDIA's shards, chopped and permuted as published."""

import itertools
import json
import random
from pathlib import Path
from typing import Any

import h5py
import pytest

from bertdata.build.conversion.example_cuts import find_destinations, find_shard_starts
from bertdata.shards.containers import open_reader
from tests.support.commands import contents


def read_by_h5py(path: Path) -> list[tuple[Any, ...]]:
    """The rows as a program that knows only the published layout reads them."""
    names = ("input_ids", "segment_ids", "masked_lm_positions", "masked_lm_ids")
    with h5py.File(path, "r") as file:
        lists = [[row.tolist() for row in file[name]] for name in names]
        return list(zip(*lists, file["next_sentence_labels"][:].tolist(), strict=True))


def rows_of(directory: Path) -> list[list[tuple[Any, ...]]]:
    """The examples of each TFRecord of a dataset, in the order of their names, as rows without padding."""
    found = []
    for path in sorted(directory.glob("*.tfrecord")):
        with open_reader(path) as reader:
            found.append(
                [
                    (
                        example.ids,
                        [0] * example.first_length + [1] * (len(example.ids) - example.first_length),
                        example.positions,
                        example.labels,
                        example.next_label,
                    )
                    for example in reader
                ]
            )
    return found


def chopped(files: list[list[Any]], shards: int, shuffled: bool) -> list[list[Any]]:
    """The published rules, plainly: pairs of file and row, shuffled or not, then cut."""
    pairs = [(file, row) for file, rows in enumerate(files) for row in range(len(rows))]
    if shuffled:
        random.Random(24).shuffle(pairs)
    nominal = -(-len(pairs) // shards)
    excess = nominal * shards - len(pairs)
    found, start = [], 0
    for shard in range(shards):
        stop = start + nominal - (1 if shard < excess else 0)
        found.append([files[file][row] for file, row in pairs[start:stop]])
        start = stop
    assert start == len(pairs)
    return found


@pytest.mark.parametrize("shards", [1, 7, 40])
@pytest.mark.parametrize("more", [[], ["--shuffled"]], ids=["chopped", "shuffled"])
def test_shards_are_those_of_the_published_rules(bertdata, training_set, tmp_path, shards, more):
    out = tmp_path / "out"
    words = ["convert", training_set, out, "--to=nvidia-mlperf", f"--num-shards={shards}", "--workers=1"]
    assert bertdata(*words, *more).status == 0
    names = [f"part_{number:05}_of_{shards:05}.hdf5" for number in range(shards)]
    assert sorted(path.name for path in out.glob("*.hdf5")) == names
    assert [read_by_h5py(out / name) for name in names] == chopped(rows_of(training_set), shards, bool(more))
    assert bertdata("verify-md5", out, "--content").status == 0
    assert not (out / "unfinished").exists()


def test_the_dataset_says_where_it_comes_from_and_is_opened(bertdata, training_set, tmp_path):
    import bertdata as face

    out = tmp_path / "out"
    bertdata("convert", training_set, out, "--to=nvidia-mlperf", "--num-shards=5", "--workers=1")
    made, source = (json.loads((place / "manifest.json").read_text()) for place in (out, training_set))
    own = {"format": "nvidia-mlperf", "shuffled": False, "shuffle": "global", "num_shards": 5}
    container = {**source["settings"]["container"], **own}
    assert made["settings"] == {**source["settings"], "container": container}
    assert made["inputs"] == source["inputs"]
    assert {**made["totals"], "bytes": 0} == {**source["totals"], "bytes": 0}
    assert (out / "vocab.txt").read_bytes() == (training_set / "vocab.txt").read_bytes()
    assert list(face.open_dataset(out)) == list(face.open_dataset(training_set))
    assert bertdata("verify-md5", out, "--chain").status == 0
    assert bertdata("stats", out, "--workers=1").status == 0
    shown = bertdata("show", out / "part_00000_of_00005.hdf5", "--index=2").out
    first = sorted(training_set.glob("*.tfrecord"))[0]
    assert shown == bertdata("show", first, "--index=2").out


@pytest.mark.parametrize("more", [[], ["--shuffled"]], ids=["chopped", "shuffled"])
def test_bytes_are_the_same_for_any_number_of_workers(bertdata, training_set, tmp_path, more):
    for workers in (1, 3):
        words = ["convert", training_set, tmp_path / str(workers), "--to=nvidia-mlperf", "--num-shards=9"]
        assert bertdata(*words, *more, f"--workers={workers}").status == 0
    assert contents(tmp_path / "1") == contents(tmp_path / "3")


@pytest.mark.parametrize("more", [[], ["--shuffled"]], ids=["chopped", "shuffled"])
def test_what_is_missing_is_made_and_the_rest_is_kept(bertdata, training_set, tmp_path, more):
    out = tmp_path / "out"
    words = ["convert", training_set, out, "--to=nvidia-mlperf", "--num-shards=6", *more, "--workers=1"]
    assert bertdata(*words).status == 0
    expected = contents(out)
    for number in (1, 4):
        (out / f"part_{number:05}_of_00006.hdf5").unlink()
    outcome = bertdata(*words)
    assert outcome.status == 0
    assert contents(out) == expected
    assert outcome.err.count("kept part_") == 4
    assert outcome.err.count("made part_") == 2


def test_a_failure_under_way_is_taken_up(bertdata, training_set, tmp_path, monkeypatch):
    from bertdata.build.conversion import chop
    from bertdata.errors import StorageError

    out, other = tmp_path / "out", tmp_path / "other"
    words = ["--to=nvidia-mlperf", "--num-shards=6", "--workers=1"]
    write = chop.write_shard

    def failing(job: Any, number: int, batches: Any) -> Any:
        if number == 3:
            raise StorageError("no room")
        return write(job, number, batches)

    with monkeypatch.context() as patch:
        patch.setattr(chop, "write_shard", failing)
        bertdata("convert", training_set, out, *words)
    assert (out / "unfinished").exists()
    assert not (out / "manifest.json").exists()
    assert "kept part_00002" in bertdata("convert", training_set, out, *words).err
    assert bertdata("convert", training_set, other, *words).status == 0
    assert contents(out) == contents(other)


@pytest.mark.parametrize("damaged", [False, True], ids=["whole", "damaged"])
def test_sorted_examples_of_a_stopped_run_are_taken_up(
    bertdata, training_set, tmp_path, monkeypatch, damaged
):
    from bertdata.build.conversion import permute

    out, other = tmp_path / "out", tmp_path / "other"
    words = ["--to=nvidia-mlperf", "--num-shards=6", "--shuffled", "--workers=1"]

    def stopped(job: Any, number: int, batches: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(permute, "write_shard", stopped)
        assert bertdata("convert", training_set, out, *words).status == 130
    files = sorted((out / "unfinished").glob("sorted*.scratch"))
    assert files
    if damaged:
        files[0].write_bytes(files[0].read_bytes()[:-1])
    again = bertdata("convert", training_set, out, *words).err
    assert again.count("sorted before") == len(files) - damaged
    assert bertdata("convert", training_set, other, *words).status == 0
    assert contents(out) == contents(other)


def test_files_of_another_tool_are_taken_with_their_vocabulary(bertdata, training_set, tmp_path):
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    for path in training_set.glob("*.tfrecord"):
        (theirs / path.stem).write_bytes(path.read_bytes())  # named as the original's: without an ending
    out = tmp_path / "out"
    words = ["convert", theirs, out, "--to=nvidia-mlperf", "--num-shards=4", "--workers=1"]
    bertdata(*words).assert_one_error(2, f"{theirs}: no manifest.json lists it")
    bertdata(*words, "--unverified").assert_one_error(2, "--unverified needs --vocab")
    assert bertdata(*words, "--unverified", "--vocab", training_set / "vocab.txt").status == 0
    names = [f"part_{number:05}_of_00004.hdf5" for number in range(4)]
    assert [read_by_h5py(out / name) for name in names] == chopped(rows_of(training_set), 4, False)
    assert bertdata("verify-md5", out, "--content").status == 0
    manifest = json.loads((out / "manifest.json").read_text())
    assert [entry["name"] for entry in manifest["inputs"]] == sorted(path.name for path in theirs.iterdir())


def test_one_file_becomes_one_file(bertdata, training_set, tmp_path):
    first = sorted(training_set.glob("*.tfrecord"))[0]
    source = tmp_path / "eval_10k"
    source.write_bytes(first.read_bytes())
    target = tmp_path / "out" / "part_eval_10k.hdf5"
    target.parent.mkdir()
    assert bertdata("convert", source, target, "--to=nvidia-mlperf", "--num-shards=1").status == 0
    assert read_by_h5py(target) == rows_of(training_set)[0]
    outcome = bertdata("verify-md5", target.parent, "--table=nvidia-mlperf-eval")
    assert "part_eval_10k.hdf5: wrong sum: found " in outcome.out  # not the published text
    back = tmp_path / "back.tfrecord"
    assert bertdata("convert", target, back).status == 0
    assert bertdata("md5", "--content", back).out[:32] == bertdata("md5", "--content", source).out[:32]


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["--num-shards=100000"], 2, "--num-shards is 100000, expected 1 to "),
        (["--num-shards=0"], 2, "'0' is out of range, expected 1 or more"),
        ([], 2, "nvidia-mlperf needs --num-shards; the published data sets have 2048 and 4320"),
        (["--num-shards=3", "--bin-size=8"], 2, "--bin-size goes with lddl"),
    ],
)
def test_settings_that_make_no_sense_are_refused(bertdata, training_set, tmp_path, words, status, told):
    outcome = bertdata("convert", training_set, tmp_path / "out", "--to=nvidia-mlperf", *words)
    outcome.assert_one_error(status, told)
    assert not (tmp_path / "out").exists()


def test_wrong_usage_is_one_line(bertdata, training_set, tmp_path):
    out = tmp_path / "out"
    bertdata("convert", training_set, out, "--to=nvidia").assert_one_error(2, "invalid choice: 'nvidia'")
    bertdata("convert", training_set, out, "--num-shards=3").assert_one_error(
        2, "--num-shards goes with --to"
    )
    bertdata("convert", training_set, f"{out}.hdf5", "--to=nvidia-mlperf", "--shuffled").assert_one_error(
        2, "out.hdf5 is one file, expected a directory"
    )
    first = sorted(training_set.glob("*.tfrecord"))[0]
    words = [out, "--to=nvidia-mlperf", "--num-shards=2"]
    bertdata("convert", first, *words).assert_one_error(2, "is a file, expected a dataset's directory")
    (tmp_path / "empty").mkdir()
    bertdata("convert", tmp_path / "empty", *words).assert_one_error(2, "holds no dataset")


def make(bertdata: Any, corpus: list[Path], vocabulary: Path, out: Path, *more: str) -> Path:
    words = ["create", corpus[0], f"--output={out}", f"--vocab={vocabulary}", "--dupe-factor=1"]
    sizes = ["--max-seq-length=64", "--max-predictions-per-seq=10"]
    assert bertdata(*words, *sizes, *more, "--workers=1").status == 0
    return out


def test_sources_that_the_layout_cannot_hold_are_refused(
    bertdata, corpus, small_vocabulary_file, training_set, tmp_path
):
    words = [tmp_path / "out", "--to=nvidia-mlperf", "--num-shards=2"]
    remasked = make(
        bertdata, corpus, small_vocabulary_file, tmp_path / "remasked", "--remask", "--dialect=graphcore"
    )
    bertdata("convert", remasked, *words).assert_one_error(
        2, "remasked: holds examples in Graphcore's remask"
    )
    packed = tmp_path / "packed"
    assert bertdata("pack", training_set, "--output", packed, "--workers=1").status == 0
    bertdata("convert", packed, *words).assert_one_error(2, "packed: holds packed rows, in the layout flat")
    assert not (tmp_path / "out").exists()


def test_another_order_or_source_is_another_dataset(
    bertdata, corpus, small_vocabulary_file, training_set, tmp_path
):
    out = tmp_path / "out"
    words = [out, "--to=nvidia-mlperf", "--num-shards=2", "--workers=1"]
    assert bertdata("convert", training_set, *words).status == 0
    bertdata("convert", training_set, *words, "--shuffled").assert_one_error(2, "shuffled False, now True")
    other = make(bertdata, corpus, small_vocabulary_file, tmp_path / "other", "--random-seed=7")
    bertdata("convert", other, *words).assert_one_error(2, "made with other settings", "random_seed")


def test_sizes_of_the_published_data_sets():
    examples = 156_725_653
    for shards in (2048, 4320):
        starts = find_shard_starts(examples, shards)
        sizes = [stop - start for start, stop in itertools.pairwise(starts)]
        nominal = -(-examples // shards)
        excess = nominal * shards - examples
        assert sizes == [nominal - 1] * excess + [nominal] * (shards - excess)
        assert starts[-1] == examples


@pytest.mark.parametrize("examples", [1, 2, 3, 1000])
def test_a_permutation_is_that_of_the_list_of_pairs(examples):
    pairs = [divmod(number, 7) for number in range(examples)]
    expected = list(pairs)
    random.Random(24).shuffle(expected)
    found = find_destinations(examples)
    assert found.dtype == "uint32"  # two such arrays of all examples are in memory
    assert [expected[place] for place in found.tolist()] == pairs
