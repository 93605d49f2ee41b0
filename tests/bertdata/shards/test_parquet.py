"""Parquet shards: what pyarrow and Hugging Face see, what comes back, and what damage says."""

import gc
import io
import pathlib
import sys
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertdata.errors import MissingExtraError, SettingsError, ShardError
from bertdata.examples.bert.batch import BertBatch, BertExample
from bertdata.records import ShardLayout
from bertdata.shards import parquet_file
from bertdata.shards.parquet import ParquetReader, ParquetWriter
from tests.support.small_shards import LAYOUT, examples, pack, plain_row


def encode(*batches: BertBatch, layout: ShardLayout = LAYOUT) -> bytes:
    sink = io.BytesIO()
    writer = ParquetWriter(sink, layout)
    for batch in batches:
        writer.write(batch)
    writer.close()
    return sink.getvalue()


def decode(data: bytes, size: int = 1000) -> list[BertExample]:
    reader = ParquetReader(io.BytesIO(data), "shard")
    return [example for batch in reader.batches(size) for example in batch.examples()]


def rewritten(data: bytes, **columns: Any) -> bytes:
    """The shard with other columns in place of its own; None drops one."""
    table = pq.read_table(io.BytesIO(data))
    for name, values in columns.items():
        at = table.column_names.index(name)
        table = table.remove_column(at) if values is None else table.set_column(at, name, pa.array(values))
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


@settings(deadline=None)
@given(rows=st.lists(examples(65_535), max_size=9), size=st.integers(1, 10))
def test_16_bit_examples_are_read_back(rows: list[BertExample], size: int) -> None:
    with patch.object(parquet_file, "GROUP_ROWS", 4):
        assert decode(encode(pack(rows)), size) == rows


@settings(deadline=None)
@given(rows=st.lists(examples(2**31 - 1), max_size=9))
def test_32_bit_examples_are_read_back(rows: list[BertExample]) -> None:
    with patch.object(parquet_file, "GROUP_ROWS", 4):
        assert decode(encode(pack(rows, "I"))) == rows


@settings(deadline=None)
@given(rows=st.lists(examples(65_535), max_size=9), cuts=st.lists(st.integers(0, 9)))
def test_bytes_depend_neither_on_batches_nor_on_item_types(rows: list[BertExample], cuts: list[int]) -> None:
    bounds = [0, *sorted(cuts), len(rows)]
    parts = [pack(rows[start:stop], "I") for start, stop in pairwise(bounds)]
    with patch.object(parquet_file, "GROUP_ROWS", 4):
        assert encode(*parts) == encode(pack(rows, "H"))


def test_batches_have_the_size_asked_for() -> None:
    reader = ParquetReader(io.BytesIO(encode(pack([plain_row(i) for i in range(7)]))), "shard")
    assert len(reader) == 7
    assert reader.layout == LAYOUT
    assert [len(batch) for batch in reader.batches(3)] == [3, 3, 1]


def test_pyarrow_sees_the_declared_columns_and_the_layout() -> None:
    table = pq.read_table(io.BytesIO(encode(pack([plain_row(5)]))))
    lists, number = pa.list_(pa.int32()), pa.int32()
    assert {field.name: field.type for field in table.schema} == {
        "input_ids": lists,
        "first_segment_length": number,
        "second_segment_length": number,
        "masked_lm_positions": lists,
        "masked_lm_ids": lists,
        "next_sentence_label": pa.int8(),
    }
    assert table.schema.metadata == {
        b"bertdata.max_seq_length": b"12",
        b"bertdata.max_predictions_per_seq": b"3",
    }
    assert table.to_pylist() == [
        {
            "input_ids": [101, 5, 103, 102, 7, 102],
            "first_segment_length": 4,
            "second_segment_length": 2,
            "masked_lm_positions": [2, 4],
            "masked_lm_ids": [9, 7],
            "next_sentence_label": 1,
        }
    ]


def test_hugging_face_datasets_loads_a_shard(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets", reason="needs Hugging Face's datasets")
    path = tmp_path / "part.parquet"
    path.write_bytes(encode(pack([plain_row(i) for i in range(5)])))
    loaded = datasets.load_dataset(
        "parquet", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert [row["input_ids"] for row in loaded] == [plain_row(i).ids for i in range(5)]
    assert loaded[0]["masked_lm_positions"] == [2, 4]
    assert loaded[0]["next_sentence_label"] == 1


def test_a_flipped_bit_names_the_first_record_of_its_row_group() -> None:
    with patch.object(parquet_file, "GROUP_ROWS", 4):
        data = bytearray(encode(pack([plain_row(i * i) for i in range(11)])))
        column = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(1).column(0)
        data[column.data_page_offset + column.total_compressed_size - 5] ^= 1
        batches = ParquetReader(io.BytesIO(data), "bad.parquet").batches(4)
        assert list(next(batches).examples())[3] == plain_row(9)
        message = r"^bad\.parquet: record 4: records 4 to 7 \(row group 1\) cannot be read"
        with pytest.raises(ShardError, match=message):
            next(batches)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_a_truncated_file_is_refused_by_name(share: float) -> None:
    data = encode(pack([plain_row(i) for i in range(50)]))
    with pytest.raises(ShardError, match="^shard: not a readable Parquet file"):
        decode(data[: int(share * len(data))])


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("input_ids", None, "no column input_ids, expected input_ids, first_segment_length"),
        ("input_ids", [3], "column input_ids is int64, expected lists of int32"),
        ("input_ids", [[0.5]], "column input_ids is list<.*double>, expected lists of int32"),
        ("next_sentence_label", ["1"], "column next_sentence_label is string, expected int8"),
    ],
)
def test_a_column_of_another_type_is_refused(name: str, values: Any, message: str) -> None:
    with pytest.raises(ShardError, match=f"^shard: {message}"):
        decode(rewritten(encode(pack([plain_row(1)])), **{name: values}))


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (None, "bertdata.max_seq_length is '' in the metadata, expected a number"),
        ("-1", "bertdata.max_seq_length is '-1' in the metadata, expected a number"),
        ("70000", "max_seq_length is 70000, expected 1 to 65535"),
    ],
)
def test_a_file_without_a_usable_layout_is_refused(size: str | None, message: str) -> None:
    table = pq.read_table(io.BytesIO(encode(pack([plain_row(1)]))))
    metadata = {"bertdata.max_predictions_per_seq": "3"} | ({"bertdata.max_seq_length": size} if size else {})
    file = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), file)
    with pytest.raises(ShardError, match=f"^shard: {message}"):
        decode(file.getvalue())


def test_other_integer_types_and_row_groups_are_read() -> None:
    table = pq.read_table(io.BytesIO(encode(pack([plain_row(i) for i in range(7)]))))
    wide = {
        field.name: pa.list_(pa.int64()) if "masked" in field.name else field.type for field in table.schema
    }
    wide |= {"input_ids": pa.large_list(pa.uint64()), "next_sentence_label": pa.int64()}
    file = io.BytesIO()
    pq.write_table(table.cast(pa.schema(wide, metadata=table.schema.metadata)), file, row_group_size=3)
    assert decode(file.getvalue(), 2) == [plain_row(i) for i in range(7)]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("input_ids", [], r"segments of 4 and 2 ids, expected 0 together"),
        ("input_ids", [1] * 7, r"segments of 4 and 2 ids, expected 7 together"),
        ("input_ids", [1, 2, 3, 4, 5, -6], "id -6, expected 0 to 2147483647"),
        ("input_ids", [1, 2, 3, 4, 5, 2**31], "id 2147483648, expected 0 to 2147483647"),
        ("input_ids", [1, 2, None, 4, 5, 6], "a hole in input_ids, expected numbers only"),
        ("input_ids", None, "no input_ids, expected a list"),
        ("second_segment_length", 3, "segments of 4 and 3 ids, expected 6 together"),
        ("first_segment_length", None, "no first_segment_length, expected a number"),
        ("masked_lm_positions", [2, 6], "masked position 6, expected 0 to 5"),
        ("masked_lm_positions", [4, 2], "masked position 2 after 4, expected ascending positions"),
        (
            "masked_lm_positions",
            [2, 3, 4],
            "2 values of masked_lm_ids, expected 3 as masked_lm_positions has",
        ),
        ("masked_lm_ids", [1, -1], "label -1, expected 0 to 2147483647"),
        ("next_sentence_label", 2, "next label 2, expected 0 to 1"),
        ("next_sentence_label", None, "no next_sentence_label, expected a number"),
    ],
)
def test_a_row_that_no_example_can_hold_is_named(name: str, value: Any, message: str) -> None:
    data = encode(pack([plain_row(i) for i in range(11)]))
    column = pq.read_table(io.BytesIO(data)).column(name).to_pylist()
    column[5] = value
    with (
        patch.object(parquet_file, "GROUP_ROWS", 4),
        pytest.raises(ShardError, match=f"^shard: record 5: {message}"),
    ):
        decode(rewritten(data, **{name: column}))


@pytest.mark.parametrize(
    ("length", "positions", "message"),
    [
        (13, [], "13 ids, expected 1 to 12"),
        (6, [1, 2, 3, 4], "4 masked positions, expected 0 to 3"),
        (6, [3, 3], "masked position 3 after 3, expected ascending positions"),
    ],
)
def test_an_example_that_does_not_fit_is_never_written(
    length: int, positions: list[int], message: str
) -> None:
    labels = [1] * len(positions)
    row = BertExample(ids=[1] * length, first_length=3, positions=positions, labels=labels, next_label=0)
    with pytest.raises(ShardError, match=f"^parquet shard: record 3: {message}"):
        encode(pack([plain_row(1)] * 2), pack([plain_row(1), row]))


def test_closing_the_writer_leaves_the_sink_open() -> None:
    sink = io.BytesIO()
    ParquetWriter(sink, LAYOUT).close()
    assert not sink.closed
    assert decode(sink.getvalue()) == []


def test_a_dropped_writer_does_not_finish_the_file() -> None:
    sink = io.BytesIO()
    writer = ParquetWriter(sink, LAYOUT)
    writer.write(pack([plain_row(1)]))
    before = sink.getvalue()
    del writer
    gc.collect()
    assert sink.getvalue() == before


def test_remasked_order_is_refused() -> None:
    layout = ShardLayout(max_seq_length=12, max_predictions_per_seq=3, remask=True)
    with pytest.raises(SettingsError, match="remask needs the container tfrecord"):
        ParquetWriter(io.BytesIO(), layout)


@pytest.mark.parametrize("package", ["pyarrow", "numpy"])
def test_a_missing_package_names_the_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    expected = rf"needs the package {package}: pip install --editable '.\[parquet\]'"
    with pytest.raises(MissingExtraError, match=expected):
        ParquetWriter(io.BytesIO(), LAYOUT)
    with pytest.raises(MissingExtraError, match=package):
        ParquetReader(io.BytesIO(), "shard")


@pytest.mark.parametrize(("group_rows", "is_small"), [(5, True), (10, True), (11, False)])
def test_row_groups_are_pieces_unless_another_program_made_them_large(
    group_rows: int, is_small: bool
) -> None:
    """A piece is read at once: at most twice the rows of a row group that is written here."""
    rows = [plain_row(number) for number in range(23)]
    with patch.object(parquet_file, "GROUP_ROWS", 5):
        table = pq.read_table(io.BytesIO(encode(pack(rows))))
        file = io.BytesIO()
        pq.write_table(table, file, row_group_size=group_rows)
        reader = ParquetReader(file, "shard")
        ends = reader.find_piece_ends()
        if not is_small:
            assert ends is None
            return
        assert ends == [*range(group_rows, 23, group_rows), 23]
        found = [example for number in range(len(ends)) for example in reader.read_piece(number).examples()]
        assert found == rows
