"""HDF5 shards: what NVIDIA's trainer reads, what comes back, and what damage says."""

import io
import pathlib
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import h5py
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertdata.errors import MissingExtraError, SettingsError, ShardError
from bertdata.examples.bert.batch import BertBatch, BertExample
from bertdata.records import ShardLayout
from bertdata.shards import hdf5_datasets
from bertdata.shards.hdf5 import Hdf5Reader, Hdf5Writer
from tests.support.paths import ROOT
from tests.support.small_shards import LAYOUT, examples, pack, plain_row

NVIDIA_FILE = "outputs/nvidia__eval.txt__s128__p20__d5__seed12345.hdf5"


def encode(*batches: BertBatch, layout: ShardLayout = LAYOUT) -> bytes:
    sink = io.BytesIO()
    writer = Hdf5Writer(sink, layout)
    for batch in batches:
        writer.write(batch)
    writer.close()
    return sink.getvalue()


def decode(data: bytes, size: int = 1000) -> list[BertExample]:
    reader = Hdf5Reader(io.BytesIO(data), "shard")
    return [example for batch in reader.batches(size) for example in batch.examples()]


def changed(data: bytes, change: Callable[[Any], object]) -> bytes:
    """The shard after ``change`` was applied to it, opened with h5py."""
    file = io.BytesIO(data)
    with h5py.File(file, "r+") as opened:
        change(opened)
    return file.getvalue()


def replaced(data: bytes, field: str, values: Any) -> bytes:
    def change(opened: Any) -> None:
        del opened[field]
        opened[field] = values

    return changed(data, change)


@settings(deadline=None)
@given(rows=st.lists(examples(65_535), max_size=9), size=st.integers(1, 10))
def test_16_bit_examples_are_read_back(rows: list[BertExample], size: int) -> None:
    with patch.object(hdf5_datasets, "BLOCK_ROWS", 4):
        assert decode(encode(pack(rows)), size) == rows


@settings(deadline=None)
@given(rows=st.lists(examples(2**31 - 1), max_size=9))
def test_32_bit_examples_are_read_back(rows: list[BertExample]) -> None:
    with patch.object(hdf5_datasets, "BLOCK_ROWS", 4):
        assert decode(encode(pack(rows, "I"))) == rows


@settings(deadline=None)
@given(rows=st.lists(examples(65_535), max_size=9), cuts=st.lists(st.integers(0, 9)))
def test_bytes_depend_neither_on_batches_nor_on_item_types(rows: list[BertExample], cuts: list[int]) -> None:
    bounds = [0, *sorted(cuts), len(rows)]
    parts = [pack(rows[start:stop], "I") for start, stop in pairwise(bounds)]
    with patch.object(hdf5_datasets, "BLOCK_ROWS", 4):
        assert encode(*parts) == encode(pack(rows, "H"))


def test_bytes_do_not_depend_on_who_holds_a_dataset_s_object(monkeypatch: pytest.MonkeyPatch) -> None:
    """A profiler that looks at the thread's frames does now and then, and then HDF5 closes it later."""
    rows = [plain_row(number) for number in range(50)]
    expected = encode(pack(rows))
    held: list[object] = []
    find = h5py.Group.__getitem__

    def find_and_hold(group: Any, name: str) -> Any:
        dataset = find(group, name)
        if name == "input_mask":
            held.append(dataset)
        return dataset

    monkeypatch.setattr(h5py.Group, "__getitem__", find_and_hold)
    assert encode(pack(rows)) == expected
    assert held


def test_a_batch_may_be_reused_after_it_was_written() -> None:
    sink = io.BytesIO()
    writer = Hdf5Writer(sink, LAYOUT)
    batch = pack([plain_row(1)])
    writer.write(batch)
    batch.ids[1] = 2
    writer.write(batch)
    writer.close()
    assert decode(sink.getvalue()) == [plain_row(1), plain_row(2)]


def test_batches_have_the_size_asked_for() -> None:
    reader = Hdf5Reader(io.BytesIO(encode(pack([plain_row(i) for i in range(7)]))), "shard")
    assert len(reader) == 7
    assert reader.layout == LAYOUT
    assert [len(batch) for batch in reader.batches(3)] == [3, 3, 1]


@pytest.mark.parametrize(
    ("chunk_rows", "has_cache"), [(1024, False), (256, False), (1000, True), (2048, True)]
)
def test_only_chunks_with_rows_of_two_blocks_are_cached(chunk_rows: int, has_cache: bool) -> None:
    data = encode(pack([plain_row(i) for i in range(2100)]))
    sink = io.BytesIO()
    with h5py.File(io.BytesIO(data)) as ours, h5py.File(sink, "w") as other:
        for name, values in ours.items():
            rows = min(chunk_rows, len(values))
            other.create_dataset(name, data=values[:], chunks=(rows, *values.shape[1:]), compression="gzip")
    reader = Hdf5Reader(io.BytesIO(sink.getvalue()), "shard")
    caches = [one.id.get_access_plist().get_chunk_cache()[1] for one in reader._file._datasets.values()]
    assert [size > 0 for size in caches] == [has_cache] * len(caches)
    assert [example for batch in reader.batches(300) for example in batch.examples()] == decode(data)


def test_h5py_sees_nvidias_types_shapes_and_compression() -> None:
    with h5py.File(io.BytesIO(encode(pack([plain_row(1)] * 5)))) as opened:
        assert {name: (data.dtype.str, data.shape, data.compression) for name, data in opened.items()} == {
            "input_ids": ("<i4", (5, 12), "gzip"),
            "input_mask": ("|i1", (5, 12), "gzip"),
            "segment_ids": ("|i1", (5, 12), "gzip"),
            "masked_lm_positions": ("<i4", (5, 3), "gzip"),
            "masked_lm_ids": ("<i4", (5, 3), "gzip"),
            "next_sentence_labels": ("|i1", (5,), "gzip"),
        }


def test_rows_are_padded_with_zeros() -> None:
    with h5py.File(io.BytesIO(encode(pack([plain_row(5)])))) as opened:
        assert {name: data[0].tolist() for name, data in opened.items()} == {
            "input_ids": [101, 5, 103, 102, 7, 102, 0, 0, 0, 0, 0, 0],
            "input_mask": [1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0],
            "segment_ids": [0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0],
            "masked_lm_positions": [2, 4, 0],
            "masked_lm_ids": [9, 7, 0],
            "next_sentence_labels": 1,
        }


def test_nvidias_own_file_is_read_and_written_with_the_same_values(kit: pathlib.Path) -> None:
    path = kit / NVIDIA_FILE
    with path.open("rb") as file:
        reader = Hdf5Reader(file, path.name)
        assert (len(reader), reader.layout) == (
            1845,
            ShardLayout(max_seq_length=128, max_predictions_per_seq=20),
        )
        data = encode(*reader.batches(100), layout=reader.layout)
    with h5py.File(path) as theirs, h5py.File(io.BytesIO(data)) as ours:
        assert sorted(ours) == sorted(theirs)
        for name in theirs:
            assert ours[name].dtype == theirs[name].dtype
            assert (ours[name][:] == theirs[name][:]).all()


def test_chunks_of_long_sequences_stay_small() -> None:
    layout = ShardLayout(max_seq_length=512, max_predictions_per_seq=80)
    with h5py.File(io.BytesIO(encode(layout=layout))) as opened:
        assert opened["input_ids"].chunks == (256, 512)


@pytest.mark.parametrize("field", ["input_ids", "masked_lm_ids", "next_sentence_labels"])
def test_a_flipped_bit_names_the_first_record_of_its_chunk(field: str) -> None:
    with patch.object(hdf5_datasets, "BLOCK_ROWS", 4):
        data = bytearray(encode(pack([plain_row(i * i) for i in range(11)])))
        with h5py.File(io.BytesIO(data)) as opened:
            start = (4,) if field == "next_sentence_labels" else (4, 0)
            chunk = opened[field].id.get_chunk_info_by_coord(start)
        data[chunk.byte_offset + chunk.size - 2] ^= 1  # in zlib's own checksum
        batches = Hdf5Reader(io.BytesIO(data), "bad.hdf5").batches(4)
        assert list(next(batches).examples())[3] == plain_row(9)
        with pytest.raises(
            ShardError, match=rf"^bad\.hdf5: record 4: {field} of records 4 to 7 cannot be read"
        ):
            next(batches)


def test_a_lost_chunk_is_not_taken_for_zeros() -> None:
    def lose_a_chunk(opened: Any) -> None:
        rows = opened["segment_ids"][:]
        del opened["segment_ids"]
        data = opened.create_dataset("segment_ids", rows.shape, "i1", chunks=(4, 6), compression="gzip")
        data[:4] = rows[:4]  # rows from 4 on were never written, and read as zeros
        data[8:] = rows[8:]

    data = changed(encode(pack([plain_row(i) for i in range(11)])), lose_a_chunk)
    with pytest.raises(ShardError, match="^shard: record 4: segment_ids of records 4 to 7 cannot be read"):
        decode(data)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_a_truncated_file_is_refused_by_name(share: float) -> None:
    data = encode(pack([plain_row(i) for i in range(50)]))
    with pytest.raises(ShardError, match="^shard: not a readable HDF5 file"):
        decode(data[: int(share * len(data))])


def test_a_missing_dataset_is_named() -> None:
    data = changed(encode(pack([plain_row(1)])), lambda opened: opened.pop("input_mask"))
    with pytest.raises(ShardError, match="^shard: no dataset input_mask, expected input_ids, "):
        decode(data)


def test_a_group_in_place_of_a_dataset_is_refused() -> None:
    def change(opened: Any) -> None:
        del opened["input_mask"]
        opened.create_group("input_mask")

    with pytest.raises(ShardError, match="no dataset input_mask"):
        decode(changed(encode(pack([plain_row(1)])), change))


@pytest.mark.parametrize(
    ("field", "values", "message"),
    [
        ("input_ids", [[1.0] * 12], r"input_ids is float64, expected integers \(int32\)"),
        ("input_ids", [1], r"input_ids has shape \(1,\), expected two dimensions"),
        ("input_mask", [[1] * 11], r"input_mask has shape \(1, 11\), expected \(1, 12\)"),
        ("masked_lm_ids", [[0] * 3] * 2, r"masked_lm_ids has shape \(2, 3\), expected \(1, 3\)"),
        ("next_sentence_labels", [[0]], r"next_sentence_labels has shape \(1, 1\), expected \(1,\)"),
        ("masked_lm_positions", [[]], "masked_lm_positions is float64"),
    ],
)
def test_a_dataset_of_another_type_or_shape_is_refused(field: str, values: Any, message: str) -> None:
    with pytest.raises(ShardError, match=f"^shard: {message}"):
        decode(replaced(encode(pack([plain_row(1)])), field, values))


def test_other_integer_types_and_contiguous_data_are_read() -> None:
    data = encode(pack([plain_row(1)]))
    for field in ("input_ids", "input_mask", "segment_ids", "masked_lm_positions", "masked_lm_ids"):
        with h5py.File(io.BytesIO(data)) as opened:
            values = opened[field][:].astype(">i8")
        data = replaced(data, field, values)
    assert decode(data) == [plain_row(1)]


@pytest.mark.parametrize(
    ("field", "column", "value", "message"),
    [
        ("input_mask", 3, 0, r"input_mask\[3\] is 0, expected 1: input_mask is ones, then zeros"),
        ("input_mask", 2, 2, r"input_mask\[2\] is 2, expected 1"),
        ("input_mask", slice(None), 0, r"input_ids\[0\] is 101, expected 0: padding"),
        ("input_ids", 9, 5, r"input_ids\[9\] is 5, expected 0: padding"),
        ("input_ids", 1, -5, "id -5, expected 0 to"),
        ("segment_ids", 1, 1, r"segment_ids\[1\] is 1, expected 0: segment_ids are zeros, then ones"),
        ("segment_ids", 8, 1, r"segment_ids\[3\] is 0, expected 1"),
        ("segment_ids", 5, -1, r"segment_ids\[5\] is -1, expected 1"),
        ("masked_lm_positions", 0, 0, r"masked_lm_positions\[1\] is 4, expected 0: padding"),
        ("masked_lm_positions", 1, 2, "masked position 2 after 2, expected ascending positions"),
        ("masked_lm_positions", 1, 6, "masked position 6, expected 1 to 5"),
        ("masked_lm_positions", 1, -1, "masked position -1, expected 1 to 5"),
        ("masked_lm_ids", 2, 8, r"masked_lm_ids\[2\] is 8, expected 0: padding"),
        ("masked_lm_ids", 0, -8, "label -8, expected 0 to"),
        ("next_sentence_labels", None, 2, "next label 2, expected 0 to 1"),
        ("next_sentence_labels", None, -1, "next label -1, expected 0 to 1"),
    ],
)
def test_a_row_that_no_example_can_hold_is_named(field: str, column: Any, value: int, message: str) -> None:
    def spoil(opened: Any) -> None:
        opened[field][5 if column is None else (5, column)] = value

    data = changed(encode(pack([plain_row(i) for i in range(11)])), spoil)
    with (
        patch.object(hdf5_datasets, "BLOCK_ROWS", 4),
        pytest.raises(ShardError, match=f"^shard: record 5: {message}"),
    ):
        decode(data)


def test_a_row_of_zeros_is_not_an_example() -> None:
    def empty(opened: Any) -> None:
        for dataset in opened.values():
            dataset[5] = 0

    with pytest.raises(ShardError, match="^shard: record 5: 0 ids, expected 1 to 12"):
        decode(changed(encode(pack([plain_row(i) for i in range(11)])), empty))


@pytest.mark.parametrize(
    ("ids", "positions", "message"),
    [
        ([1] * 13, [], "13 ids, expected 1 to 12"),
        ([1] * 6, [1, 2, 3, 4], "4 masked positions, expected 0 to 3"),
        ([1] * 6, [0, 2], "masked position 0, expected 1 to 5"),
        ([2**31] * 6, [], "id 2147483648, expected 0 to 2147483647"),
    ],
)
def test_an_example_that_does_not_fit_is_never_written(
    ids: list[int], positions: list[int], message: str
) -> None:
    row = BertExample(ids=ids, first_length=3, positions=positions, labels=[1] * len(positions), next_label=0)
    with pytest.raises(ShardError, match=f"^hdf5 shard: record 3: {message}"):
        encode(pack([plain_row(1)] * 2), pack([plain_row(1), row], "I"))


def test_the_sink_gets_nothing_before_close_and_stays_open() -> None:
    sink = io.BytesIO()
    writer = Hdf5Writer(sink, LAYOUT)
    writer.write(pack([plain_row(1)]))
    assert sink.getvalue() == b""
    writer.close()
    assert not sink.closed


def test_remasked_order_is_refused() -> None:
    layout = ShardLayout(max_seq_length=12, max_predictions_per_seq=3, remask=True)
    with pytest.raises(SettingsError, match="remask needs the container tfrecord"):
        Hdf5Writer(io.BytesIO(), layout)


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    expected = r"needs the package h5py: pip install --editable '.\[hdf5\]'"
    with pytest.raises(MissingExtraError, match=expected):
        Hdf5Writer(io.BytesIO(), LAYOUT)
    with pytest.raises(MissingExtraError, match="h5py"):
        Hdf5Reader(io.BytesIO(), "shard")


INTERRUPTED = """
import io, os, signal
from bertdata.shards import hdf5, hdf5_file
from tests.support.paths import ROOT
from tests.support.small_shards import LAYOUT, pack, plain_row

plain_write = hdf5_file.ScratchFile.write

def write_and_interrupt(self, data):
    hdf5_file.ScratchFile.write = plain_write
    os.kill(os.getpid(), signal.SIGINT)
    return plain_write(self, data)

hdf5_file.ScratchFile.write = write_and_interrupt
sink = io.BytesIO()
try:
    writer = hdf5.Hdf5Writer(sink, LAYOUT)
    writer.write(pack([plain_row(number) for number in range(2000)]))
    writer.close()
except KeyboardInterrupt:
    print("interrupted")
writer = None
print(len(sink.getvalue()))
"""


def test_an_interrupt_while_hdf5_writes_leaves_no_traceback() -> None:
    """HDF5, which must not see it, goes on to where it can stop."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, cwd=ROOT)
    assert (done.stdout, done.stderr, done.returncode) == ("interrupted\n0\n", "", 0)
