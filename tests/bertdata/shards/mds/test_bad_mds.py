"""Damaged and unsafe MDS directories: one line each, which names file and fault."""

import io
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertdata.errors import ShardError
from bertdata.shards.mds import directory
from bertdata.shards.mds.container import MdsReader
from bertdata.shards.mds.directory import write_directory
from bertdata.shards.mds.index import ShardForm
from bertdata.shards.mds.shard_file import join_shard, read_head

Change = Callable[[Path], None]


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """Two shards with hashes, as ModernBERT's trainer reads them."""
    form = ShardForm.from_columns(
        {"id": "str", "input_ids": "ndarray:uint16"}, hashes=("sha1",), size_limit=400
    )
    rows = [np.arange(3 + number, dtype=np.uint16) for number in range(12)]
    place = tmp_path / "foreign"
    place.mkdir()
    write_directory(str(place), form, [{"id": f"x-{i}", "input_ids": row} for i, row in enumerate(rows)])
    return place


def edit(place: Path, change: Callable[[Any], None]) -> None:
    value = json.loads((place / "index.json").read_text())
    change(value)
    (place / "index.json").write_text(json.dumps(value))


def patch(path: Path, place: int, data: bytes) -> None:
    held = bytearray(path.read_bytes())
    place %= len(held)
    held[place : place + len(data)] = data
    path.write_bytes(held)


def without_index(change: Change) -> Change:
    def changed(place: Path) -> None:
        (place / "index.json").unlink()
        change(place)

    return changed


CASES: dict[str, tuple[Change, str]] = {
    "no JSON": (lambda place: (place / "index.json").write_text("{"), "index.json: is no JSON"),
    "no shards": (
        lambda place: (place / "index.json").write_text("[]"),
        "index.json: holds no list of shards",
    ),
    "brackets": (
        lambda place: (place / "index.json").write_text("[" * 100_000),
        "index.json: is no JSON: its values are nested more than 500 deep",
    ),
    "brackets in a shard": (
        lambda place: patch(place / "shard.00000.mds", 4 * 10, b"[" * 100_000),
        "shard.00000.mds: ",
    ),
    "version 3": (lambda place: edit(place, lambda value: value.update(version=3)), "version 3, expected 2"),
    "version 3 of a shard": (
        lambda place: edit(place, lambda value: value["shards"][1].update(version=3)),
        "shard 1: version 3, expected 2",
    ),
    "pkl": (
        lambda place: edit(
            place, lambda value: value["shards"][0].update(column_encodings=["pkl", "ndarray"])
        ),
        "column id: type pkl runs code when it is read, and is refused",
    ),
    "unknown type": (
        lambda place: edit(
            place, lambda value: value["shards"][0].update(column_encodings=["str", "complex"])
        ),
        "column input_ids: unknown type 'complex'",
    ),
    "sizes": (
        lambda place: edit(place, lambda value: value["shards"][0].update(column_sizes=[None, 4])),
        "column_sizes [None, 4], expected [None, None]",
    ),
    "no raw_data": (
        lambda place: edit(place, lambda value: value["shards"][0].pop("raw_data")),
        "shard 0: raw_data: is None, expected basename, bytes and hashes",
    ),
    "outside": (
        lambda place: edit(place, lambda value: value["shards"][0]["raw_data"].update(basename="../a.mds")),
        "lists '../a.mds', expected a file in its own directory",
    ),
    "unknown hash": (
        lambda place: edit(place, lambda value: value["shards"][0]["raw_data"].update(hashes={"crc": "1"})),
        "unknown hash 'crc'",
    ),
    "samples": (
        lambda place: edit(place, lambda value: value["shards"][0].update(samples=2)),
        "samples, expected 2 by index.json",
    ),
    "missing shard": (
        lambda place: (place / "shard.00001.mds").unlink(),
        "shard.00001.mds: is missing, index.json lists it with",
    ),
    "wrong hash": (
        lambda place: patch(place / "shard.00000.mds", -1, b"\x09"),
        "shard.00000.mds: sha1",
    ),
    "truncated": (
        lambda place: (place / "shard.00000.mds").write_bytes((place / "shard.00000.mds").read_bytes()[:-3]),
        "by index.json; copy it again",
    ),
    "truncated, without an index": (
        without_index(
            lambda place: (place / "shard.00000.mds").write_bytes(
                (place / "shard.00000.mds").read_bytes()[:-3]
            )
        ),
        "by its offsets; it is truncated or damaged",
    ),
    "a few bytes": (
        without_index(lambda place: (place / "shard.00000.mds").write_bytes(b"\x07\0\0")),
        "3 bytes, expected 4 more at its start; it is truncated",
    ),
    "offsets that fall": (
        without_index(lambda place: patch(place / "shard.00000.mds", 8, struct.pack("<I", 5))),
        "shard.00000.mds: record 1: offset 5, expected",
    ),
    "a shape of two axes": (
        without_index(lambda place: patch(place / "shard.00000.mds", -18, b"\x08")),
        "expected 1",
    ),
    "no description": (
        without_index(lambda place: patch(place / "shard.00000.mds", 40, b"\0" * 40)),
        "shard.00000.mds: ",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_directories_are_one_line(bertdata, foreign, name):
    change, problem = CASES[name]
    first = foreign / "shard.00000.mds"
    change(foreign)
    source = foreign if (foreign / "index.json").exists() else first
    outcome = bertdata("convert", source, foreign.parent / "out.tfrecord")
    assert outcome.status in (1, 2)
    assert problem in outcome.err
    outcome.assert_one_error(outcome.status, str(foreign))
    assert not (foreign.parent / "out.tfrecord").exists()


def test_the_sound_directory_is_read(bertdata, foreign):
    assert bertdata("convert", foreign, foreign.parent / "out.tfrecord").out.endswith("12 examples\n")


def write(place: Path, columns: dict[str, str], samples: list[dict[str, Any]]) -> Path:
    place.mkdir()
    write_directory(str(place), ShardForm.from_columns(columns), samples)
    return place


def test_a_negative_id_is_refused_by_record(bertdata, tmp_path):
    rows = [np.array(row, np.int32) for row in ([5, 6], [7, -1])]
    columns = {"tokens": "ndarray:int32", "metadata": "json"}
    place = write(tmp_path / "in", columns, [{"tokens": row, "metadata": {}} for row in rows])
    outcome = bertdata("convert", place, tmp_path / "out.tfrecord")
    outcome.assert_one_error(1, "shard.00000.mds: record 1: id -1, expected 0 to")


def test_a_text_column_is_told_from_ids(bertdata, tmp_path):
    place = write(tmp_path / "in", {"text": "str"}, [{"text": "plain words"}])
    outcome = bertdata("convert", place, tmp_path / "out.tfrecord")
    outcome.assert_one_error(1, "holds text (column text), not ids; expected the column input_ids")


def test_other_columns_are_named(bertdata, tmp_path):
    place = write(tmp_path / "in", {"image": "jpeg", "label": "int"}, [{"image": b"\0", "label": 3}])
    outcome = bertdata("show", place / "shard.00000.mds")
    outcome.assert_one_error(1, "has the columns image, label, expected input_ids or tokens")
    place = write(
        tmp_path / "floats", {"input_ids": "ndarray:float32"}, [{"input_ids": np.ones(2, np.float32)}]
    )
    outcome = bertdata("show", place / "shard.00000.mds")
    outcome.assert_one_error(
        1, "column input_ids is of the type ndarray:float32, expected ndarray of whole numbers"
    )


@pytest.mark.parametrize("objective", ["bert", "sop", "span"])
def test_other_objectives_are_refused_when_ids_are_read(bertdata, foreign, objective):
    outcome = bertdata("convert", foreign, foreign.parent / "out.tfrecord", f"--objective={objective}")
    outcome.assert_one_error(2, f"holds ids alone; objective {objective} has")


@pytest.mark.parametrize("missing", [0, 1])
def test_a_shard_is_at_most_as_large_as_its_offsets_can_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: int
) -> None:
    form = ShardForm.from_columns({"input_ids": "ndarray:uint16"}, size_limit=None)
    samples = [{"input_ids": np.arange(3 + number, dtype=np.uint16)} for number in range(12)]
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    write_directory(str(tmp_path / "one"), form, samples)
    size = (tmp_path / "one" / "shard.00000.mds").stat().st_size
    monkeypatch.setattr(directory, "LARGEST_SHARD", size - missing)
    if missing:
        with pytest.raises(ShardError, match="two: shard 0 passes 4 GiB; give a size limit"):
            write_directory(str(tmp_path / "two"), form, samples)
    else:
        write_directory(str(tmp_path / "two"), form, samples)
        assert (tmp_path / "two" / "shard.00000.mds").stat().st_size == size


def test_the_size_that_the_offsets_say_is_told() -> None:
    head = ShardForm.from_columns({"input_ids": "ndarray:uint16"}, size_limit=None).dump()
    data = join_shard([b"first", b"second"], head)
    file = io.BytesIO(data + b"more")
    told = f"shard: {len(data) + 4} bytes, expected {len(data)} by its offsets; it is truncated or damaged"
    with pytest.raises(ShardError, match=told):
        read_head(file, "shard")


def test_the_sizes_of_a_shard_are_measured_unless_they_are_known(foreign: Path) -> None:
    path = foreign / "shard.00000.mds"
    with path.open("rb") as file:
        measured = MdsReader(file, str(path))
        known = MdsReader(file, str(path), layout=measured.layout)
    assert (measured.is_measured, known.is_measured) == (True, False)
    assert measured.layout == known.layout
