"""Memory of ``create`` on sources of records: as much for a corpus four times as large."""

import sys
from pathlib import Path

import pytest

from benchmarks.records import measure_run
from tests.support.record_files import as_json_lines, as_zstd, make_documents

BLOCK = as_json_lines(make_documents(10_000)) + b"\n"
FLAGS = ("--sentences=none", "--objective=mlm", "--no-masks", "--blocks=none", "--dupe-factor=1")


def held(place: Path, megabytes: int, vocabulary: Path) -> float:
    """The most megabytes that all processes held at once."""
    source = place / f"{megabytes}.jsonl.zst"
    source.write_bytes(as_zstd(BLOCK) * (megabytes * 1_000_000 // len(BLOCK)))
    command = (sys.executable, "-m", "bertdata", "create", str(source), "--output", f"{source}.made")
    return measure_run(
        *command, "--vocab", str(vocabulary), "--workers=2", "--max-seq-length=512", *FLAGS
    ).megabytes


@pytest.mark.thorough
def test_memory_of_create_does_not_grow_with_the_source(small_vocabulary_file: Path, tmp_path: Path) -> None:
    assert held(tmp_path, 400, small_vocabulary_file) < held(tmp_path, 100, small_vocabulary_file) + 40
