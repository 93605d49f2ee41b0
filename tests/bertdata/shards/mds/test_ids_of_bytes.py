"""MDS shards whose ids are a column of bytes, as LLM Foundry writes them: --ids-type says what they are."""

import json
from pathlib import Path

import pytest

from tests.support.commands import Program

np = pytest.importorskip("numpy")
IDS = [[5, 6, 70_000], [8], [9, 10]]


def write(directory: Path, dtype: str) -> Path:
    """An uncompressed shard by hand, as mosaicml-streaming lays it out: number, offsets, JSON, samples."""
    form = json.dumps(
        {
            "column_encodings": ["bytes"],
            "column_names": ["tokens"],
            "column_sizes": [None],
            "compression": None,
            "format": "mds",
            "hashes": [],
            "size_limit": None,
            "version": 2,
        }
    ).encode()
    values = [np.array(ids).astype(dtype).tobytes() for ids in IDS]
    samples = [len(value).to_bytes(4, "little") + value for value in values]
    offsets = np.cumsum([4 * (len(IDS) + 2) + len(form), *map(len, samples)]).astype("<u4")
    path = directory / "shard.00000.mds"
    path.write_bytes(len(IDS).to_bytes(4, "little") + offsets.tobytes() + form + b"".join(samples))
    return path


@pytest.mark.parametrize("dtype", ["int64", "uint32", "int32"])
def test_ids_in_bytes_are_read_by_their_type(dtype: str, bertdata: Program, tmp_path: Path) -> None:
    path = write(tmp_path, dtype)
    outcome = bertdata("convert", path, tmp_path / "all.tfrecord", "--objective", "mlm", "--ids-type", dtype)
    assert outcome.status == 0, outcome.err
    shown = bertdata("show", tmp_path / "all.tfrecord", "--num", 3).out
    assert shown == bertdata("show", path, "--num", 3, "--ids-type", dtype, "--objective", "mlm").out
    assert "70000" in shown


def test_bytes_without_a_type_are_asked_about(bertdata: Program, tmp_path: Path) -> None:
    path = write(tmp_path, "int64")
    outcome = bertdata("convert", path, tmp_path / "all.tfrecord", "--objective", "mlm")
    assert (outcome.status, outcome.err.count("\n")) == (1, 1)
    assert "column tokens is of the type bytes" in outcome.err
    assert "--ids-type int64" in outcome.err


def test_bytes_that_are_no_multiple_of_the_type_are_refused(bertdata: Program, tmp_path: Path) -> None:
    path = write(tmp_path, "uint32")
    outcome = bertdata("show", path, "--ids-type", "int64")
    assert (outcome.status, outcome.err.count("\n")) == (1, 1)
    assert "record 0: 12 bytes of ids, expected a multiple of 8" in outcome.err


def test_a_compressed_tfrecord_is_named(bertdata: Program, tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "a.tfrecord"
    path.write_bytes(gzip.compress(b"\x20" + bytes(60)))
    outcome = bertdata("show", path)
    assert (outcome.status, outcome.err.count("\n")) == (1, 1)
    assert f"{path}: looks like gzip data, expected a shard; unpack it: mv " in outcome.err
