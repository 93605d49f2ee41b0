"""A directory tree against a published table: one verdict a row."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from bertdata.dataset.published.tables import load_table
from bertdata.dataset.verify_table import verify_table
from bertdata.io.file_check import compute_md5
from bertdata.shards.crc32c import compute_masked_checksum

TABLE = "mlperf-v1.0"
EVAL_10K_BYTES = 25_382_591
ALL_SHARDS_BYTES = 391_434_110_129


@pytest.fixture
def verdict(tmp_path):
    """The statuses of one row's file, found by its label or path."""

    def look(label: str) -> list[str]:
        report = verify_table(str(tmp_path), TABLE)
        return [finding.status for finding in report.findings if finding.file.endswith(label)]

    return look


def sparse_file(path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        os.truncate(file.fileno(), size)


def test_the_published_vocabulary_is_right_wherever_it_lies(verdict, published_vocabulary, tmp_path):
    place = tmp_path / "a" / "b" / "vocab.txt"
    place.parent.mkdir(parents=True)
    shutil.copy(published_vocabulary, place)
    assert verdict("vocab.txt") == ["right"]
    assert verify_table(str(tmp_path), TABLE).sound


def test_a_changed_byte_is_a_wrong_md5(verdict, published_vocabulary, tmp_path):
    data = published_vocabulary.read_bytes()
    (tmp_path / "vocab.txt").write_bytes(b"#" + data[1:])
    assert verdict("vocab.txt") == ["wrong md5"]


def test_another_length_is_a_wrong_size(verdict, tmp_path):
    (tmp_path / "vocab.txt").write_bytes(b"[PAD]\n")
    report = verify_table(str(tmp_path), TABLE)
    (fault,) = report.faults
    assert (fault.status, fault.found, fault.expected) == ("wrong size", "6 bytes", "231508 bytes")


def test_an_absent_file_is_missing_and_no_fault(verdict, published_vocabulary, tmp_path):
    shutil.copy(published_vocabulary, tmp_path / "vocab.txt")
    assert verdict("results/eval.txt") == ["missing"]


def test_a_row_of_size_alone_is_right_by_its_size(verdict, tmp_path):
    sparse_file(tmp_path / "eval_10k", EVAL_10K_BYTES)
    assert verdict("eval_10k") == ["right"]
    sparse_file(tmp_path / "eval_10k", EVAL_10K_BYTES - 1)
    assert verdict("eval_10k") == ["wrong size"]


def test_the_total_of_all_shards_adds_their_sizes_up(verdict, tmp_path):
    half = ALL_SHARDS_BYTES // 2
    sparse_file(tmp_path / "tfrecord" / "part-00001-of-00500", half)
    sparse_file(tmp_path / "tfrecord" / "part-00002-of-00500", ALL_SHARDS_BYTES - half)
    assert verdict("all 500 TFRecords together") == ["right"]


def test_some_of_the_shards_are_no_wrong_total(verdict, tmp_path):
    sparse_file(tmp_path / "tfrecord" / "part-00000-of-00500", 514_241_279)
    report = verify_table(str(tmp_path), TABLE)
    assert report.sound
    total = next(one for one in report.findings if one.file == "all 500 TFRecords together")
    assert (total.status, total.detail) == ("missing", "1 of 500 files are here")


@pytest.mark.parametrize("name", ["tfrecords4", "out/train"])
def test_tfrecords_are_found_in_a_directory_of_any_name(tmp_path, name):
    place = tmp_path / name / "part-00000-of-00500"
    sparse_file(place, 514_241_279)
    length = (16).to_bytes(8, "little")
    with place.open("r+b") as file:
        file.write(length + compute_masked_checksum(length).to_bytes(4, "little"))
    report = verify_table(str(tmp_path), TABLE)
    assert [one.file for one in report.findings if one.status == "right"] == [str(place)]
    assert report.sound


def test_a_text_of_that_name_elsewhere_is_no_tfrecord(verdict, tmp_path):
    (tmp_path / "part-00000-of-00500").write_text("A sentence.\nAnother one.\n")
    assert verdict("TFRecord of part-00000-of-00500") == ["missing"]


def test_two_checkpoints_of_one_name_are_told_apart_by_what_fits(verdict, tmp_path):
    # model.ckpt-28252.index was published twice, for tf1 and tf2
    rows = [row for row in load_table(TABLE) if row.label.startswith("model.ckpt-28252.index")]
    assert len(rows) == 2
    sparse_file(tmp_path / "tf1" / "model.ckpt-28252.index", rows[0].bytes)
    assert [one.status for one in found_of(tmp_path, rows)] == ["wrong md5", "missing"]
    sparse_file(tmp_path / "tf2" / "model.ckpt-28252.index", rows[1].bytes)
    assert [one.status for one in found_of(tmp_path, rows)] == ["wrong md5", "wrong md5"]


def found_of(place, rows) -> list:
    """The findings of the rows, by their numbers in the table."""
    findings = verify_table(str(place), TABLE).findings
    return [findings[load_table(TABLE).index(row)] for row in rows]


def test_a_tree_of_one_half_is_no_fault_of_the_other_with_the_same_paths(tmp_path):
    files = {"tf1": b"one", "tf2": b"other"}
    lines = [f"model ({name})\t{len(data)}\t{compute_md5(data)}\tmodel" for name, data in files.items()]
    table = tmp_path / "table.tsv"
    table.write_text("\n".join(["label\tbytes\tmd5\tpaths", *lines, ""]))
    tree = tmp_path / "tree"
    tree.mkdir()
    for number, data in enumerate(files.values()):
        (tree / "model").write_bytes(data)
        report = verify_table(str(tree), str(table))
        assert report.sound
        assert [one.status for one in report.findings][number] == "right"
        assert [one.status for one in report.findings][1 - number] == "missing"
    (tree / "model").write_bytes(b"neither")
    (fault,) = verify_table(str(tree), str(table)).faults
    assert str(fault).endswith("model: wrong size: found 7 bytes, expected 3 bytes or 5 bytes")


def test_rows_of_one_path_and_one_size_are_told_apart_by_their_md5s(tmp_path):
    lines = [f"{data}\t1\t{compute_md5(data.encode())}\tmodel" for data in "ab"]
    table = tmp_path / "table.tsv"
    table.write_text("\n".join(["label\tbytes\tmd5\tpaths", *lines, ""]))
    (tmp_path / "model").write_text("b")
    report = verify_table(str(tmp_path), str(table))
    assert [one.status for one in report.findings] == ["missing", "right"]


def test_the_directorys_own_name_counts(tmp_path, monkeypatch):
    results = tmp_path / "results"
    sparse_file(results / "eval.md5", 330_000)
    monkeypatch.chdir(results)
    for given in (results, f"{results}/", ".", f"file://{results}"):
        (fault,) = verify_table(str(given), TABLE).faults
        assert (fault.status, fault.file.rsplit("/", 1)[-1]) == ("wrong md5", "eval.md5")


def test_a_directory_of_another_name_than_the_tables_is_told_so(tmp_path):
    sparse_file(tmp_path / "parts" / "eval.md5", 330_000)
    (fault,) = verify_table(str(tmp_path / "parts"), TABLE).faults
    assert fault.status == f"holds no file of the table {TABLE}"
    assert fault.detail == "eval.md5 is in the table as results/eval.md5"


def test_a_stages_directory_is_found_by_the_tail_of_its_paths(verdict, tmp_path):
    sparse_file(tmp_path / "run7" / "text" / "FE" / "wiki_00", 1_048_175)
    assert verdict("text/FE/wiki_00") == ["wrong md5"]
    assert verdict("text/FE/wiki_01") == ["missing"]


def test_a_path_longer_than_any_is_one_line_at_once(bertdata: Any, tmp_path: Path) -> None:
    """As a pattern, so many open brackets would take minutes."""
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a").touch()
    table = tmp_path / "sums.tsv"
    table.write_text(f"label\tbytes\tmd5\tpaths\ntext\t9\t-\t{'[' * 100_000}\n")
    told = f"{table}: line 2: a path has 100000 characters, expected at most 4096"
    bertdata("verify-md5", tmp_path / "set", f"--table={table}").assert_one_error(1, told)
