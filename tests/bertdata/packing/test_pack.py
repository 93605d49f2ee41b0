"""``bertdata pack``: every example in the row that its key says, the same bytes however it is run."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bertdata
import bertdata.dataset.sorted_runs as runs
import bertdata.packing.gather as gather
import bertdata.packing.run as packing_run
import bertdata.packing.shard_cuts as cuts
from bertdata.dataset.manifest import parse_manifest
from bertdata.dataset.reader import open_dataset
from bertdata.errors import StorageError
from bertdata.packing.methods import plan_packs
from bertdata.packing.permutation import derive_round_keys, permute_number
from bertdata.shards.containers import open_reader
from bertdata.shards.packed.layouts import make_pack_writer
from golden.cases import VOCABULARY
from tests.support.commands import Outcome, Program, contents

SIZES = ("--max-seq-length=64", "--max-predictions-per-seq=10", "--dupe-factor=4", "--workers=1")
SHARDS = ("--num-shards", "4")

Pack = Callable[..., Outcome]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Datasets of the sample corpus by container, and what is packed of them."""
    place = tmp_path_factory.mktemp("packing")
    corpus = [str(path) for path in sorted((Path(VOCABULARY).parent / "corpus").glob("part-*"))]
    settings = {"max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 4, "workers": 1}
    for container in ("tfrecord", "hdf5", "parquet"):
        bertdata.create(corpus, place / container, vocab=VOCABULARY, format=container, **settings)
    bertdata.pack(place / "tfrecord", place / "packed", num_shards=4, workers=1)
    return place


@pytest.fixture
def pack(bertdata: Program, made: Path, tmp_path: Path) -> Pack:
    """The command on the TFRecord dataset, into tmp_path/out."""

    def call(*flags: object, source: Path = made / "tfrecord", workers: int = 1) -> Outcome:
        places = ["--output", tmp_path / "out", "--workers", workers]
        return bertdata("pack", source, *places, *(flags or SHARDS))

    return call


def examples_of(path: Path) -> list[object]:
    opened = open_dataset(str(path))
    return [one for shard in opened.shards for batch in opened.batches(shard) for one in batch.examples()]


def rows_of(path: Path) -> list[list[object]]:
    """The examples of each row."""
    opened, found = open_dataset(str(path)), []
    for shard in opened.shards:
        for packs in opened.packs(shard):
            examples, start = list(packs.examples.examples()), 0
            for end in map(int, packs.ends):
                found.append(examples[start:end])
                start = end
    return found


def test_every_example_stands_where_the_plan_and_its_keys_say(made):
    source = examples_of(made / "tfrecord")
    lengths = [len(example.ids) for example in source]
    plan = plan_packs(np.bincount(lengths, minlength=65), most=3)
    slots: dict[int, list[tuple[int, int]]] = {}
    row = 0
    for row_lengths, number in plan.rows_by_lengths:
        for place, length in enumerate(row_lengths):
            slots.setdefault(length, []).extend((one, place) for one in range(row, row + number))
        row += number
    expected: list[dict[int, object]] = [{} for _ in range(plan.rows)]
    numbers: Counter[int] = Counter()
    for example, length in zip(source, lengths, strict=True):
        keys = derive_round_keys(f"12345/length/{length}")
        row, place = slots[length][permute_number(numbers[length], len(slots[length]), keys)]
        expected[permute_number(row, plan.rows, derive_round_keys("12345/rows"))][place] = example
        numbers[length] += 1
    assert rows_of(made / "packed") == [[row[place] for place in range(len(row))] for row in expected]


def test_the_manifest_says_what_was_packed_and_how(made):
    data = (made / "packed" / "manifest.json").read_bytes()
    manifest, source = json.loads(data), (made / "tfrecord" / "manifest.json").read_bytes()
    records, others = manifest["settings"], json.loads(source)["settings"]
    settings, before = records.pop("container"), others.pop("container")
    assert records == others
    added = {name: value for name, value in settings.items() if before.get(name) != value}
    assert len(added.pop("packing_plan")) == 32
    assert added == {
        "format": "parquet",
        "packing": "flat",
        "sequences_per_row": 3,
        "packing_method": "lp",
        "packing_seed": 12345,
        "shuffle": "global",
        "num_shards": 4,
    }
    assert (made / "packed" / "sources" / "dataset.json").read_bytes() == source
    assert manifest["inputs"] == json.loads(source)["inputs"]
    names = [f"shard-{number:05}-of-00004.parquet" for number in range(4)]
    assert [shard["name"] for shard in manifest["shards"]] == names
    rows = rows_of(made / "packed")
    assert sum(shard["rows"] for shard in manifest["shards"]) == len(rows)
    assert all(len(row) <= 3 and sum(len(one.ids) for one in row) <= 64 for row in rows)
    assert parse_manifest(data, "manifest").dump() == data


@pytest.mark.parametrize("flags", [(), ("--content",), ("--chain",)])
def test_the_packed_dataset_is_sound(bertdata, made, flags):
    outcome = bertdata("verify-md5", made / "packed", *flags)
    assert outcome.status == 0, outcome.out
    assert "4 files right, sound" in outcome.out


def test_the_chain_names_a_source_that_is_another(bertdata, made, tmp_path):
    outcome = bertdata("verify-md5", made / "packed", "--chain", "--source", made / "tfrecord")
    assert outcome.status == 0, outcome.out
    assert "<- dataset: dataset, mlperf, 3 shards" in outcome.out
    shutil.copytree(made / "packed", tmp_path / "packed")
    copy = tmp_path / "packed" / "sources" / "dataset.json"
    copy.write_bytes(copy.read_bytes().replace(b'"dupe_factor": 4', b'"dupe_factor": 5'))
    outcome = bertdata("verify-md5", tmp_path / "packed", "--chain")
    assert outcome.status == 1
    assert "dataset.json: wrong md5" in outcome.out


@pytest.mark.parametrize("container", ["hdf5", "parquet"])
def test_another_container_of_the_same_examples_is_packed_alike(pack, made, tmp_path, container):
    assert pack(source=made / container).status == 0
    found, expected = contents(tmp_path / "out"), contents(made / "packed")
    shards = [name for name in expected if name.endswith((".parquet", ".u16"))]
    assert len(shards) == 8
    assert {name: found[name] for name in shards} == {name: expected[name] for name in shards}


def test_files_of_any_tool_are_packed_alike(bertdata, pack, made, tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    for path in (made / "tfrecord").glob("*.tfrecord"):
        shutil.copy(path, files)
    outcome = pack(*SHARDS, "--unverified", "--vocab", VOCABULARY, source=files)
    assert outcome.status == 0, outcome.err
    assert rows_of(tmp_path / "out") == rows_of(made / "packed")
    assert bertdata("verify-md5", tmp_path / "out", "--content", "--chain").status == 0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["recipe"] is None
    assert manifest["settings"]["objective"]["unverified"] is True
    assert [entry["name"] for entry in manifest["inputs"]] == sorted(path.name for path in files.iterdir())
    assert bertdata("stats", tmp_path / "out").status == 0


def test_a_dataset_without_lengths_is_read_for_them(bertdata, pack, made, tmp_path):
    old = tmp_path / "old"
    shutil.copytree(made / "tfrecord", old)
    manifest = json.loads((old / "manifest.json").read_text())
    for shard in manifest["shards"]:
        del shard["lengths_md5"]
    data = parse_manifest(json.dumps(manifest).encode(), "manifest")
    (old / "manifest.json").write_bytes(data.dump())
    (old / "MD5SUMS").write_bytes(data.md5sums())
    shutil.rmtree(old / "lengths")
    assert pack(source=old).status == 0
    assert rows_of(tmp_path / "out") == rows_of(made / "packed")


def test_two_workers_make_the_same_files(pack, made, tmp_path):
    assert pack(workers=2).status == 0
    assert contents(tmp_path / "out") == contents(made / "packed")


def test_sizes_of_runs_and_buckets_make_no_difference(pack, made, tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "RUN_TOKENS", 3000)
    monkeypatch.setattr(cuts, "BUCKET_POSITIONS", 64 * 50)
    assert pack().status == 0
    assert contents(tmp_path / "out") == contents(made / "packed")


def test_another_seed_is_another_order_of_the_same_rows(pack, made, tmp_path):
    assert pack(*SHARDS, "--seed", "7").status == 0
    found, before = rows_of(tmp_path / "out"), rows_of(made / "packed")

    def tally(rows):
        return Counter(tuple(len(one.ids) for one in row) for row in rows)

    assert tally(found) == tally(before)
    assert found != before
    assert sorted(map(repr, examples_of(tmp_path / "out"))) == sorted(map(repr, examples_of(made / "packed")))


def broken_after(function, calls):
    """The function, which fails after so many calls."""
    count = iter(range(calls))

    def call(task):
        if next(count, None) is None:
            raise StorageError("disk full")
        return function(task)

    return call


@pytest.mark.parametrize(
    ("name", "calls", "sorted_before", "kept"),
    [
        ("sort_shards_together", 1, 1, 0),
        ("write_or_keep_shards", 0, 3, 0),
        ("write_or_keep_shards", 1, 3, 2),
    ],
)
def test_a_run_that_was_stopped_goes_on(pack, made, tmp_path, monkeypatch, name, calls, sorted_before, kept):
    stopped = broken_after(getattr(packing_run, name), calls)
    with monkeypatch.context() as patch:
        patch.setattr(packing_run, name, lambda task: stop_as_killed(stopped, task))
        assert pack().status == 130
    outcome = pack()
    assert outcome.status == 0
    lines = outcome.err.splitlines()
    assert sum("sorted before" in line for line in lines) == sorted_before
    assert sum(line.startswith("kept shard") for line in lines) == kept
    assert contents(tmp_path / "out") == contents(made / "packed")


def stop_as_killed(function, task):
    """An end that leaves everything as it is."""
    try:
        return function(task)
    except StorageError:
        raise KeyboardInterrupt from None


def test_a_damaged_sorted_file_is_made_again(pack, made, tmp_path, monkeypatch):
    stopped = broken_after(packing_run.write_or_keep_shards, 0)
    with monkeypatch.context() as patch:
        patch.setattr(packing_run, "write_or_keep_shards", lambda tasks: stop_as_killed(stopped, tasks))
        assert pack().status == 130
    damaged, lost, _ = sorted((tmp_path / "out" / "unfinished").rglob("*.scratch"))
    data = bytearray(damaged.read_bytes())
    data[100] ^= 1
    damaged.write_bytes(data)
    lost.unlink()
    outcome = pack()
    assert sum("sorted before" in line for line in outcome.err.splitlines()) == 1
    assert contents(tmp_path / "out") == contents(made / "packed")


def test_shards_that_are_made_side_by_side_are_the_same(pack, made, tmp_path, monkeypatch):
    monkeypatch.setattr(packing_run, "group_small_tasks", lambda tasks, most, workers: [tasks])
    monkeypatch.setattr(cuts, "BUCKET_POSITIONS", 64 * 50)
    outcome = pack()
    assert outcome.err.count("sorted part-") == 3
    assert outcome.err.count("made shard-") == 4
    assert contents(tmp_path / "out") == contents(made / "packed")


def test_a_shard_that_cannot_be_written_leaves_none_of_its_group(pack, tmp_path, monkeypatch):
    calls = iter(range(100))

    def full_disk(*given):
        if next(calls) == 2:
            raise StorageError("disk full")
        return make_pack_writer(*given)

    monkeypatch.setattr(gather, "make_pack_writer", full_disk)
    monkeypatch.setattr(packing_run, "group_small_tasks", lambda tasks, most, workers: [tasks])
    outcome = pack()
    assert (outcome.status, outcome.err.splitlines()[-1]) == (1, "bertdata: error: disk full")
    names = [path.name for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert not [name for name in names if name.startswith("shard-")]


@pytest.mark.parametrize(
    ("tasks", "workers", "sizes"),
    [(16, 1, [8, 8]), (3, 1, [1, 1, 1]), (100, 8, [6] * 16 + [4]), (40, 1, [8] * 5), (5, 99, [1] * 5)],
)
def test_groups_leave_work_for_every_worker(tasks, workers, sizes):
    groups = packing_run.group_small_tasks(range(tasks), 8, workers)
    assert [len(group) for group in groups] == sizes
    assert [number for group in groups for number in group] == list(range(tasks))


def test_a_finished_dataset_is_kept_and_a_lost_shard_made_again(pack, made, tmp_path):
    shutil.copytree(made / "packed", tmp_path / "out")
    outcome = pack()
    assert outcome.err.count("kept shard-") == 4
    assert "sorted" not in outcome.err
    (tmp_path / "out" / "shard-00002-of-00004.parquet").unlink()
    outcome = pack()
    assert outcome.err.count("kept shard-") == 3
    assert outcome.err.count("made shard-") == 1
    assert contents(tmp_path / "out") == contents(made / "packed")


def test_plan_only_says_how_full_the_rows_would_be(bertdata, made, tmp_path):
    outcome = bertdata("pack", made / "tfrecord", "--plan-only", "--json")
    found = json.loads(outcome.out)
    rows = rows_of(made / "packed")
    tokens = sum(len(one.ids) for row in rows for one in row)
    assert found["rows"] == len(rows)
    assert found["tokens"] == tokens
    assert found["efficiency"] == tokens / (64 * len(rows)) <= found["bound"] <= 1
    assert found["rows_by_examples"] == {
        str(number): count for number, count in sorted(Counter(map(len, rows)).items())
    }
    assert found["time_saved"] == 1 - len(rows) / found["examples"]
    told = bertdata("pack", made / "tfrecord", "--plan-only").out
    assert f"{found['efficiency']:.4%} of the positions hold tokens; no packing of at most 3" in told
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--layout", "best"), "layout 'best' is not known, expected one of "),
        (("--format", "csv"), "format is 'csv', layout flat has parquet"),
        (("--method", "best"), "method is 'best', expected one of lp, lpfhp, nnls"),
        (("--max-sequences-per-pack", "65"), "--max-sequences-per-pack is 65, expected at most 64"),
        (("--num-shards", "100000"), "--num-shards is 100000, expected at most "),
        (("--unverified",), "--unverified needs --vocab"),
    ],
)
def test_wrong_settings_are_refused_and_nothing_is_written(pack, tmp_path, flags, message):
    pack(*flags).assert_one_error(2, message)
    assert not (tmp_path / "out").exists()


def test_a_number_below_one_is_no_number_of_sequences(bertdata, made, tmp_path):
    outcome = bertdata("pack", made / "tfrecord", "--output", tmp_path / "out", "--max-sequences-per-pack=0")
    assert outcome.status == 2
    assert "'0' is out of range, expected 1 or more" in outcome.err


def test_an_output_is_needed(bertdata, made):
    bertdata("pack", made / "tfrecord").assert_one_error(2, "no output directory given")


def test_packed_rows_are_not_packed_again(pack, made, tmp_path):
    pack(source=made / "packed").assert_one_error(2, "packed already, in the layout flat")
    assert not (tmp_path / "out").exists()


def test_the_directory_of_another_plan_is_refused(pack, made, tmp_path):
    shutil.copytree(made / "packed", tmp_path / "out")
    pack(*SHARDS, "--max-sequences-per-pack", "2").assert_one_error(
        2, "was made with other settings", "sequences_per_row 3, now 2"
    )
    assert contents(tmp_path / "out") == contents(made / "packed")


def change_lengths(dataset: Path, change: Callable[[np.ndarray], None]) -> None:
    """Change the lengths of the first shard, and the manifest to fit them."""
    [path] = dataset.glob("lengths/part-00000*")
    lengths = np.fromfile(path, "<u2")
    change(lengths)
    lengths.tofile(path)
    manifest = json.loads((dataset / "manifest.json").read_text())
    from bertdata.io.file_check import compute_file_md5

    manifest["shards"][0]["lengths_md5"] = compute_file_md5(str(path))
    data = parse_manifest(json.dumps(manifest).encode(), "manifest")
    (dataset / "manifest.json").write_bytes(data.dump())
    (dataset / "MD5SUMS").write_bytes(data.md5sums())


def test_lengths_that_do_not_fit_are_an_error_and_nothing_is_left(pack, made, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(made / "tfrecord", other)

    def one_more(lengths):
        lengths[np.argmin(lengths)] += 1

    change_lengths(other, one_more)
    pack(source=other).assert_one_error(1, "part-00000-of-00003.tfrecord: holds", "but its lengths in")
    assert not (tmp_path / "out").exists()


def test_an_example_longer_than_a_row_is_an_error(pack, made, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(made / "tfrecord", other)

    def too_long(lengths):
        lengths[5] = 65

    change_lengths(other, too_long)
    pack(source=other).assert_one_error(1, "record 5: 65 tokens, expected 1 to 64")
    assert not (tmp_path / "out").exists()


def test_damaged_lengths_and_shards_are_an_error(pack, made, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(made / "tfrecord", other)
    [path] = other.glob("part-00000*")
    data = bytearray(path.read_bytes())
    data[1000] ^= 1
    path.write_bytes(data)
    pack(source=other).assert_one_error(1, "part-00000-of-00003.tfrecord: found md5")
    assert not (tmp_path / "out").exists()
    [path] = other.glob("lengths/part-00002*")
    path.write_bytes(path.read_bytes()[:-2])
    pack(source=other).assert_one_error(1, "part-00002-of-00003.tfrecord.u16: found ")
    assert not (tmp_path / "out").exists()


def test_a_lost_vocabulary_has_to_be_given(pack, made, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(made / "tfrecord", other)
    (other / "vocab.txt").unlink()
    pack(source=other).assert_one_error(1, "its vocabulary, md5 ", "give --vocab FILE")
    assert not (tmp_path / "out").exists()
    assert pack(*SHARDS, "--vocab", VOCABULARY, source=other).status == 0
    assert contents(tmp_path / "out") == contents(made / "packed")


def test_a_packed_shard_reads_as_its_examples(made):
    path = next((made / "packed").glob("shard-00000*"))
    with open_reader(path) as reader:
        assert reader.layout.packing == "flat"
        assert list(reader) == [one for row in rows_of(made / "packed") for one in row][: len(reader)]
