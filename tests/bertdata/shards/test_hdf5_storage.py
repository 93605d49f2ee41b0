"""HDF5 files made to lead elsewhere, or to claim more than they hold, are refused before anything is read."""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from bertdata.errors import ShardError
from bertdata.shards.hdf5 import Hdf5Reader, Hdf5Writer
from tests.support.small_shards import LAYOUT, pack, plain_row

ROWS = 8


def sound_shard() -> bytes:
    sink = io.BytesIO()
    writer = Hdf5Writer(sink, LAYOUT)
    writer.write(pack([plain_row(number) for number in range(ROWS)]))
    writer.close()
    return sink.getvalue()


def shard_with(put: Callable[[Any], object], field: str = "segment_ids") -> bytes:
    """A sound shard in which ``put`` made that field anew."""
    file = io.BytesIO(sound_shard())
    with h5py.File(file, "r+") as opened:
        del opened[field]
        put(opened)
    return file.getvalue()


def refusal(data: bytes) -> str:
    with pytest.raises(ShardError) as raised:
        for _ in Hdf5Reader(io.BytesIO(data), "shard").batches(100):
            pass
    return str(raised.value)


def test_values_in_another_file_are_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(ROWS * 12))

    def lie_outside(opened: Any) -> None:
        opened.create_dataset("segment_ids", (ROWS, 12), "i1", external=[(str(secret), 0, ROWS * 12)])

    message = "shard: segment_ids lies in an external file, expected its values in this file"
    assert refusal(shard_with(lie_outside)) == message


def test_a_virtual_dataset_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.hdf5"
    other.write_bytes(sound_shard())

    def assemble(opened: Any) -> None:
        layout = h5py.VirtualLayout((ROWS, 12), "i1")
        layout[:] = h5py.VirtualSource(str(other), "segment_ids", (ROWS, 12))
        opened.create_virtual_dataset("segment_ids", layout)

    message = "shard: segment_ids is a virtual dataset, expected its values in this file"
    assert refusal(shard_with(assemble)) == message


@pytest.mark.parametrize("kind", ["soft", "external"])
def test_only_hard_links_are_followed(tmp_path: Path, kind: str) -> None:
    other = tmp_path / "other.hdf5"
    other.write_bytes(sound_shard())

    def link(opened: Any) -> None:
        outside = h5py.ExternalLink(str(other), "/segment_ids")
        opened["segment_ids"] = h5py.SoftLink("/input_mask") if kind == "soft" else outside

    message = "shard: segment_ids is a link to another place, expected the dataset itself"
    assert refusal(shard_with(link)) == message


@pytest.mark.parametrize("chunks", [None, (2, 12)])
def test_values_never_written_are_not_taken_for_the_fill_value(chunks: Any) -> None:
    def fill(opened: Any) -> None:
        opened.create_dataset("segment_ids", (ROWS, 12), "i1", chunks=chunks, fillvalue=0)

    expected = {
        None: "shard: segment_ids has 0 bytes of its 96, expected all written",
        (
            2,
            12,
        ): "shard: record 0: segment_ids of records 0 to 1 cannot be read, expected every chunk written",
    }
    assert refusal(shard_with(fill)) == expected[chunks]


def test_a_small_file_with_a_billion_rows_is_refused() -> None:
    file = io.BytesIO(sound_shard())
    with h5py.File(file, "r+") as opened:
        for dataset in opened.values():
            dataset.resize(10**9, axis=0)
    message = refusal(file.getvalue())
    assert "input_ids has shape (1000000000, 12), more than a file of " in message


def test_a_small_file_that_decompresses_to_hundreds_of_megabytes_is_refused() -> None:
    rows, width = 40_000, 512
    file = io.BytesIO()
    with h5py.File(file, "w") as opened:
        for field, columns in (("input_ids", width), ("input_mask", width), ("segment_ids", width)):
            data = np.zeros((rows, columns), "i4")
            opened.create_dataset(field, data=data, chunks=data.shape, compression=9)
        for field in ("masked_lm_positions", "masked_lm_ids"):
            opened.create_dataset(field, data=np.zeros((rows, 20), "i4"), chunks=(rows, 20), compression=9)
        opened.create_dataset("next_sentence_labels", data=np.zeros(rows, "i1"))
    data = file.getvalue()
    assert len(data) < 1_000_000
    assert "input_ids has chunks of 81,920,000 bytes in a file of " in refusal(data)


def test_chunks_that_share_their_bytes_are_refused() -> None:
    """The index leads forty times to the first chunk's bytes, and the file ends behind them."""
    rows, chunk = 40_000, 1000

    def make_large(opened: Any) -> None:
        for dataset in opened.values():
            dataset.resize(rows, axis=0)
            dataset[:] = 0
        shape, chunks = (rows, LAYOUT.max_seq_length), (chunk, LAYOUT.max_seq_length)
        opened.create_dataset("segment_ids", shape, "i1", chunks=chunks)[:] = 0

    data = shard_with(make_large)
    with h5py.File(io.BytesIO(data)) as opened:
        dataset = opened["segment_ids"].id
        starts = [dataset.get_chunk_info(number).byte_offset for number in range(rows // chunk)]
    first, *others = (start.to_bytes(8, "little") for start in starts)
    for start in others:
        assert data.count(start) == 1
        data = data.replace(start, first)
    end = starts[0] + chunk * LAYOUT.max_seq_length
    data = data[:40] + end.to_bytes(8, "little") + data[48:end]  # the superblock's end of file
    assert re.fullmatch(r"shard: its datasets claim 48\d,\d{3} bytes of a file of \d{2},\d{3}", refusal(data))


def test_rows_in_one_chunk_are_read() -> None:
    """Some tools write a whole dataset as one chunk; a file of a few megabytes with them is ordinary."""
    rows = 6_000
    file = io.BytesIO()
    random = np.random.default_rng(1)
    with h5py.File(file, "w") as opened:
        columns = {"input_ids": 512, "input_mask": 512, "segment_ids": 512}
        columns |= {"masked_lm_positions": 76, "masked_lm_ids": 76}
        for field, width in columns.items():
            data = np.zeros((rows, width), "i4")
            if field in ("input_ids", "input_mask"):
                data[:] = random.integers(1, 30_000, data.shape) if field == "input_ids" else 1
            opened.create_dataset(field, data=data, chunks=data.shape, compression="gzip")
        opened.create_dataset("next_sentence_labels", data=np.zeros(rows, "i1"), compression="gzip")
    assert len(Hdf5Reader(io.BytesIO(file.getvalue()), "shard")) == rows
