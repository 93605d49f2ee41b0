"""NVIDIA's shards of varying length: ours read by h5py, others' by us, damage told by its record."""

import io
import struct
from collections.abc import Callable
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.errors import SettingsError, ShardError
from bertdata.examples.bert.batch import BertExample
from bertdata.records import ShardLayout
from bertdata.shards.containers import make_reader, make_writer
from bertdata.shards.varlength import VarlengthReader
from tests.support.small_shards import LAYOUT, examples, pack, plain_row

TYPES = {"input_ids": "i2", "segment_ids": "i1", "masked_lm_positions": "i2", "masked_lm_ids": "i2"}


def written(rows: list[BertExample], *batches: int, layout: ShardLayout = LAYOUT) -> bytes:
    sink = io.BytesIO()
    writer = make_writer("nvidia-mlperf", sink, layout)
    for start, stop in zip((0, *batches), (*batches, len(rows)), strict=True):
        writer.write(pack(rows[start:stop], "I"))
    writer.close()
    return sink.getvalue()


def read(data: bytes) -> list[BertExample]:
    reader = make_reader(io.BytesIO(data), "shard.hdf5")
    assert isinstance(reader, VarlengthReader)
    return [example for batch in reader.batches(5) for example in batch.examples()]


def ragged(rows: list[list[int]], item: str) -> Any:
    made = np.empty(len(rows), dtype=object)
    for number, row in enumerate(rows):
        made[number] = np.array(row, item)
    return made


def as_theirs(change: Callable[[dict[str, Any]], None] = lambda lists: None, **options: Any) -> bytes:
    """Two rows as the original writes them: whole datasets from memory, nothing else in the file."""
    lists: dict[str, Any] = {
        "input_ids": [[101, 5, 6, 102, 7, 102], [101, 8, 102, 102]],
        "segment_ids": [[0, 0, 0, 0, 1, 1], [0, 0, 0, 1]],
        "masked_lm_positions": [[1, 4], []],
        "masked_lm_ids": [[9, 7], []],
    }
    change(lists)
    made = io.BytesIO()
    with h5py.File(made, "w") as file:
        for field, rows in lists.items():
            kind = h5py.vlen_dtype(np.dtype(TYPES[field]))
            file.create_dataset(field, data=ragged(rows, TYPES[field]), dtype=kind, **options)
        file.create_dataset("next_sentence_labels", data=np.array([1, 0], "i1"))
    return made.getvalue()


THEIRS = [
    BertExample(ids=[101, 5, 6, 102, 7, 102], first_length=4, positions=[1, 4], labels=[9, 7], next_label=1),
    BertExample(ids=[101, 8, 102, 102], first_length=3, positions=[], labels=[], next_label=0),
]


@given(st.lists(examples(largest_id=32767), max_size=9))
def test_examples_come_back_as_they_were(rows: list[BertExample]) -> None:
    assert read(written(rows)) == rows


def test_h5py_reads_rows_without_padding_in_the_published_types() -> None:
    rows = [plain_row(number) for number in range(1500)]
    with h5py.File(io.BytesIO(written(rows)), "r") as file:
        assert sorted(file) == sorted([*TYPES, "next_sentence_labels"])
        for field, item in TYPES.items():
            assert file[field].shape == (1500,)
            assert h5py.check_vlen_dtype(file[field].dtype) == np.dtype(item)
        assert file["next_sentence_labels"].dtype == "i1"
        for number in (0, 1023, 1024, 1499):
            assert file["input_ids"][number].tolist() == [101, number, 103, 102, 7, 102]
            assert file["segment_ids"][number].tolist() == [0, 0, 0, 0, 1, 1]
            assert file["masked_lm_positions"][number].tolist() == [2, 4]
            assert file["masked_lm_ids"][number].tolist() == [9, 7]
            assert file["next_sentence_labels"][number] == 1


@pytest.mark.parametrize("options", [{}, {"chunks": (1,)}, {"chunks": (2,), "compression": "gzip"}])
def test_a_file_as_the_original_writes_it_is_read(options: dict[str, Any]) -> None:
    data = as_theirs(**options)
    assert read(data) == THEIRS
    layout = make_reader(io.BytesIO(data), "shard.hdf5").layout
    assert (layout.max_seq_length, layout.max_predictions_per_seq) == (512, 76)


def test_our_files_say_how_long_their_examples_may_be() -> None:
    assert make_reader(io.BytesIO(written([plain_row(1)])), "shard.hdf5").layout == LAYOUT


def test_bytes_do_not_depend_on_batches() -> None:
    rows = [plain_row(number) for number in range(1100)]
    assert written(rows) == written(rows, 1, 700, 701)


def test_a_file_without_rows_is_read() -> None:
    assert read(written([])) == []


def test_an_id_of_more_than_16_bits_is_refused_by_its_record() -> None:
    rows = [plain_row(1), plain_row(32768)]
    with pytest.raises(ShardError, match=r"record 1: id 32768, expected at most 32767"):
        written(rows)


def test_remasked_order_and_other_objectives_are_refused() -> None:
    with pytest.raises(SettingsError, match="remask needs the container tfrecord"):
        written([], layout=ShardLayout(max_seq_length=12, max_predictions_per_seq=3, remask=True))
    with pytest.raises(SettingsError, match="those of the objective mlm have ids and masks$"):
        written([], layout=ShardLayout(max_seq_length=12, max_predictions_per_seq=3, objective="mlm"))


def shorten(field: str) -> Callable[[dict[str, Any]], None]:
    return lambda lists: lists[field][0].pop()


def test_lists_that_do_not_belong_together_are_refused_by_their_record() -> None:
    with pytest.raises(ShardError, match=r"^shard.hdf5: record 0: 5 segment ids, expected 6, as many as ids"):
        read(as_theirs(shorten("segment_ids")))
    with pytest.raises(ShardError, match=r"record 0: 1 masked ids, expected 2, as many as masked positions"):
        read(as_theirs(shorten("masked_lm_ids")))
    with pytest.raises(ShardError, match=r"record 0: segment id 1 at 4, expected zeros, then ones"):
        read(as_theirs(lambda lists: lists["segment_ids"][0].__setitem__(5, 0)))
    with pytest.raises(ShardError, match=r"record 1: masked position 4, expected 0 to 3"):
        read(as_theirs(lambda lists: (lists["masked_lm_positions"][1].append(4),
                                      lists["masked_lm_ids"][1].append(4))))  # fmt: skip


def test_a_damaged_collection_is_told_by_the_first_record_in_it() -> None:
    data = bytearray(written([plain_row(number) for number in range(6000)]))
    row = data.index(struct.pack("<6h", 101, 5900, 103, 102, 7, 102))
    data[data.rindex(b"GCOL", 0, row)] = 0
    with pytest.raises(ShardError) as caught:
        read(bytes(data))
    message = str(caught.value)
    assert message.startswith("shard.hdf5: record ")
    assert "input_ids cannot be read: no values at byte" in message
    first = int(message.split()[2].rstrip(":"))
    assert 0 < first <= 5900


def reference(data: bytes, items: int) -> int:
    """The place of the first reference to a list of that many items."""
    address = data.index(b"GCOL")
    return data.index(struct.pack("<IQ", items, address))


def test_a_reference_of_another_length_is_told_by_its_record() -> None:
    data = bytearray(as_theirs())
    place = reference(data, 6)
    data[place] = 5
    with pytest.raises(ShardError, match=r"record 0: input_ids cannot be read: found 12 bytes, expected 10"):
        read(bytes(data))
    data[place : place + 4] = b"\xff\xff\xff\x7f"
    with pytest.raises(ShardError, match=r"input_ids claims 4,294,967,302 bytes of a file of"):
        read(bytes(data))


def test_a_file_with_rows_of_another_kind_is_refused() -> None:
    made = io.BytesIO(as_theirs())
    with h5py.File(made, "r+") as file:
        del file["segment_ids"]
        file.create_dataset("segment_ids", data=np.zeros((2, 6), "i1"))
    with pytest.raises(ShardError, match=r"segment_ids is int8 of shape \(2, 6\), expected one list"):
        read(made.getvalue())
