"""A finished directory of parts of records whose files were damaged since: the same call makes it whole."""

import json
from pathlib import Path

import pytest

import bertdata
from tests.support.commands import contents


def segment(place: Path) -> dict[str, bytes]:
    bertdata.segment(place / "a.jsonl", place / "out", sentences="lines", eval_share="20%", workers=1)
    return contents(place / "out")


@pytest.fixture
def finished(tmp_path: Path) -> dict[str, bytes]:
    records = [{"text": f"Water runs down {number} steps.\nIt is cold."} for number in range(40)]
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in records), encoding="utf-8")
    found = segment(tmp_path)
    assert {"part-00000.txt", "removed.jsonl", "MD5SUMS"} <= found.keys()
    return found


@pytest.mark.parametrize("name", ["part-00000.txt", "removed.jsonl", "MD5SUMS"])
@pytest.mark.parametrize("size", [None, 0, 9])
def test_a_lost_or_cut_file_is_made_again(
    finished: dict[str, bytes], tmp_path: Path, name: str, size: int | None
) -> None:
    path = tmp_path / "out" / name
    path.unlink()
    if size is not None:
        path.write_bytes(finished[name][:size])
    assert segment(tmp_path) == finished


def test_lost_md5sums_alone_do_not_make_the_parts_again(finished: dict[str, bytes], tmp_path: Path) -> None:
    part = tmp_path / "out" / "part-00000.txt"
    before = part.stat().st_mtime_ns
    (tmp_path / "out" / "MD5SUMS").unlink()
    assert segment(tmp_path) == finished
    assert part.stat().st_mtime_ns == before
