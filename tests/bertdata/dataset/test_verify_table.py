"""A directory tree against a published table: one verdict a row."""

import os
import shutil

import pytest

from bertdata.dataset.published.tables import load_table
from bertdata.dataset.verify_table import verify_table

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


def test_two_checkpoints_of_one_name_are_told_apart_by_what_fits(verdict, tmp_path):
    # model.ckpt-28252.index was published twice, for tf1 and tf2
    rows = [row for row in load_table(TABLE) if row.label.startswith("model.ckpt-28252.index")]
    assert len(rows) == 2
    sparse_file(tmp_path / "tf1" / "model.ckpt-28252.index", rows[0].bytes)
    assert sorted(verdict("model.ckpt-28252.index")) == ["wrong md5", "wrong size"]


def test_a_stages_directory_is_found_by_the_tail_of_its_paths(verdict, tmp_path):
    sparse_file(tmp_path / "run7" / "text" / "FE" / "wiki_00", 1_048_175)
    assert verdict("text/FE/wiki_00") == ["wrong md5"]
    assert verdict("text/FE/wiki_01") == ["missing"]
