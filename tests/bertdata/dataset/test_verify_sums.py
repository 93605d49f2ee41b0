"""Shards of varying length against sums of their rows."""

import hashlib
import json
from pathlib import Path

import h5py
import pytest

from bertdata.dataset.published.sums import list_sum_tables, load_sums
from bertdata.examples.bert.batch import BertExample
from bertdata.records import ShardLayout
from bertdata.shards.containers import make_writer
from bertdata.shards.row_sums import compute_row_sum
from tests.support.small_shards import LAYOUT, pack, plain_row

LARGE = 32767
NAMES = ("part_00000_of_00003.hdf5", "part_00001_of_00003.hdf5", "part_00002_of_00003.hdf5")


def write_shard(path: Path, rows: list[BertExample], format: str = "nvidia-mlperf") -> None:
    layout = ShardLayout(max_seq_length=512, max_predictions_per_seq=3)
    with path.open("wb") as sink:
        writer = make_writer(format, sink, layout if format == "nvidia-mlperf" else LAYOUT)
        writer.write(pack(rows))
        writer.close()


def rows_of(count: int) -> list[BertExample]:
    """Rows of 2 to 200 ids of one to five digits."""
    return [
        BertExample(
            ids=[(7 * number + 31 * place**3) % (LARGE + 1) for place in range(2 + number % 199)],
            first_length=1,
            positions=[1],
            labels=[5],
            next_label=0,
        )
        for number in range(count)
    ]


def md5(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


def twin(path: Path) -> str:
    """The published rule in three lines, read by h5py."""
    with h5py.File(path, "r") as file:
        rows = [md5(str([int(item) for item in row])) for row in file["input_ids"]]
    return md5(str(rows))


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Three shards, and a table of their sums by the twin beside their directory."""
    folder = tmp_path / "shards"
    folder.mkdir()
    for number, name in enumerate(NAMES):
        write_shard(folder / name, rows_of(1500)[number::3])
    lines = [f"{name}\t{twin(folder / name)}\n" for name in NAMES]
    (tmp_path / "table.tsv").write_text("name\tsum\n" + "".join(lines))
    return folder


def test_a_sum_is_the_one_that_the_plain_rule_gives(tmp_path: Path) -> None:
    for count in (0, 1, 1100):
        write_shard(tmp_path / "part.hdf5", rows_of(count))
        assert compute_row_sum(str(tmp_path / "part.hdf5")) == twin(tmp_path / "part.hdf5")


def test_ids_beyond_16_bits_are_summed_too(tmp_path: Path) -> None:
    write_shard(tmp_path / "part.hdf5", rows_of(5))
    with h5py.File(tmp_path / "part.hdf5", "r+") as file:
        rows = [[-1, 7, 100000], [32767], [0, 1], [2, 3], [4, 5]]
        del file["input_ids"]
        wide = file.create_dataset("input_ids", (5,), h5py.vlen_dtype("i4"))
        for number, row in enumerate(rows):
            wide[number] = row
    assert compute_row_sum(str(tmp_path / "part.hdf5")) == md5(str([md5(str(row)) for row in rows]))


def test_the_package_holds_the_published_sums() -> None:
    assert list_sum_tables() == [
        "nvidia-mlperf-2048", "nvidia-mlperf-4320", "nvidia-mlperf-4320-shuffled", "nvidia-mlperf-eval",
    ]  # fmt: skip
    sizes = {"2048": 2048, "4320": 4320, "4320-shuffled": 4320, "eval": 1}
    tables = {name: load_sums(f"nvidia-mlperf-{name}") or {} for name in sizes}
    assert {name: len(table) for name, table in tables.items()} == sizes
    for name, table in tables.items():
        assert len(set(table.values())) == len(table)
        if name != "eval":
            assert list(table) == [
                f"part_{number:05}_of_{sizes[name]:05}.hdf5" for number in range(sizes[name])
            ]
    assert tables["eval"] == {"part_eval_10k.hdf5": "611d8bae26646145e1c33338a27ba124"}
    assert tables["4320"]["part_00000_of_04320.hdf5"] == "e25b1a34b8d14179b2774d1dbf3b7561"


def test_shards_that_are_all_right_are_sound(bertdata, shards: Path) -> None:
    outcome = bertdata("verify-md5", shards, "--table", shards.parent / "table.tsv", "--workers=2")
    assert outcome.status == 0
    assert outcome.out.splitlines() == [
        *(f"{shards / name}: right" for name in NAMES),
        f"{shards}: 3 files right, sound",
    ]


def test_a_wrong_a_missing_an_extra_and_a_damaged_shard_are_named(bertdata, shards: Path) -> None:
    table = shards.parent / "table.tsv"
    changed = rows_of(1500)[0::3]
    changed[17].ids[-1] += 1
    expected = twin(shards / NAMES[0])
    write_shard(shards / NAMES[0], changed)
    (shards / NAMES[1]).unlink()
    (shards / NAMES[2]).write_bytes((shards / NAMES[2]).read_bytes()[:-1000])
    write_shard(shards / "part_00003_of_00003.hdf5", changed)
    outcome = bertdata("verify-md5", shards, "--table", table, "--workers=1")
    assert outcome.status == 1
    lines = outcome.out.splitlines()
    assert lines[0] == f"{shards / NAMES[0]}: wrong sum: found {twin(shards / NAMES[0])}, expected {expected}"
    assert lines[1].startswith(f"{shards / NAMES[2]}: damaged; not a readable HDF5 file")
    assert lines[2] == f"{shards / 'part_00003_of_00003.hdf5'}: extra; the table {table} has no such shard"
    assert lines[3] == f"{shards}: 2 of the table's 3 files found"
    assert lines[4] == f"{shards / NAMES[1]}: missing"
    assert lines[5] == f"{shards}: 0 files right, 4 faults"


def test_the_report_as_json_names_each_shard(bertdata, shards: Path) -> None:
    outcome = bertdata("verify-md5", shards, "--table", "nvidia-mlperf-eval", "--json", "--workers=1")
    assert outcome.status == 1
    findings = json.loads(outcome.out)["findings"]
    assert [finding["status"] for finding in findings] == ["extra", "extra", "extra", "missing"]
    assert findings[3]["file"] == f"{shards}/part_eval_10k.hdf5"


def test_a_shard_of_padded_rows_has_no_sum(bertdata, shards: Path) -> None:
    write_shard(shards / NAMES[1], [plain_row(1)], "hdf5")
    outcome = bertdata("verify-md5", shards, "--table", shards.parent / "table.tsv", "--workers=1")
    assert "has no sum of rows, expected HDF5 in rows of varying length" in outcome.out.splitlines()[1]
    outcome = bertdata("md5", "--nvidia-mlperf", shards / NAMES[1])
    outcome.assert_one_error(1, NAMES[1], "has no sum of rows")


def test_md5_prints_the_sum_of_a_shard(bertdata, shards: Path) -> None:
    path = shards / NAMES[0]
    assert bertdata("md5", "--nvidia-mlperf", path).out == f"{twin(path)}  {path}\n"


def test_a_table_that_is_none_is_refused(bertdata, shards: Path) -> None:
    table = shards.parent / "table.tsv"
    table.write_text("name\tsum\npart_00000_of_00003.hdf5\n")
    outcome = bertdata("verify-md5", shards, "--table", table)
    outcome.assert_one_error(1, "table.tsv: line 2: expected another shard's name and its sum")
    outcome = bertdata("verify-md5", shards, "--table", "nvidia-mlperf-2049")
    outcome.assert_one_error(2, "'nvidia-mlperf-2049' is not known", "nvidia-mlperf-4320-shuffled")


def test_a_wrong_directory_is_not_thousands_of_lines(bertdata, shards: Path) -> None:
    for number in range(60):
        (shards / f"other_{number:02}.hdf5").write_bytes(b"")
    outcome = bertdata("verify-md5", shards, "--table", "nvidia-mlperf-4320", "--workers=1")
    assert outcome.status == 1
    lines = outcome.out.splitlines()
    missing = [line for line in lines if line.endswith(".hdf5: missing")]
    assert missing == [f"{shards}/part_{number:05}_of_04320.hdf5: missing" for number in range(10)]
    extra = [line for line in lines if ": extra; the table nvidia-mlperf-4320 has no such shard" in line]
    assert len(extra) == 10
    assert extra[0].startswith(f"{shards}/other_00.hdf5")
    assert "and 4310 more: missing" in lines
    assert "and 53 more: extra" in lines
    assert lines[-1] == f"{shards}: 0 files right, 4383 faults"
    assert f"{shards}: 0 of the table's 4320 files found" in lines
    assert len(lines) == 24
    outcome = bertdata("verify-md5", shards, "--table", "nvidia-mlperf-4320", "--workers=1", "--json")
    assert len(json.loads(outcome.out)["findings"]) == 4383
