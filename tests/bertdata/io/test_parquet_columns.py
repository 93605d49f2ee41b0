"""Column chunks and page headers of Parquet: read as pyarrow reads them, or refused."""

import io
from pathlib import Path

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from bertdata.errors import ShardError
from bertdata.io.parquet_columns import (
    BYTE_ARRAY,
    DELTA_BYTE_ARRAY,
    SMALL_CHUNK_BYTES,
    ColumnChunk,
    find_excessive_page,
    list_page_headers,
    parse_page_header,
    read_column_chunks,
)
from bertdata.shards.parquet_file import ParquetInput
from tests.support.paths import ROOT

CLAIMING = ROOT / "tests" / "soak" / "corpus" / "lddl" / "f4bd6c6ffa9040e2"
"""A damaged file of LDDL that a fuzzer found. A page of its column A claims more bytes than any disk has."""

ENDING = ROOT / "tests" / "soak" / "corpus" / "records.parquet" / "b817aab392c408ba"
"""A damaged file of records that a fuzzer found. pyarrow ends the process if asked for its second column."""


@given(
    texts=st.lists(st.text(max_size=30) | st.none(), min_size=1, max_size=200),
    compression=st.sampled_from(["none", "zstd", "snappy", "gzip", "lz4"]),
    version=st.sampled_from(["1.0", "2.0"]),
    dictionary=st.booleans(),
    checksum=st.booleans(),
    statistics=st.booleans(),
)
def test_column_chunks_and_their_pages_are_those_of_pyarrow(
    texts, compression, version, dictionary, checksum, statistics
):
    table = pyarrow.table({"a": texts, "b": [[n, -n] for n in range(len(texts))], "c": [1.5] * len(texts)})
    file = io.BytesIO()
    parquet.write_table(
        table, file, compression=compression, data_page_version=version, use_dictionary=dictionary,
        write_page_checksum=checksum, write_statistics=statistics, data_page_size=300, write_batch_size=20,
        row_group_size=90,
    )  # fmt: skip
    groups = read_column_chunks(file)
    found = parquet.ParquetFile(file).metadata
    assert len(groups) == found.num_row_groups
    for number, chunks in enumerate(groups):
        expected = [found.row_group(number).column(place) for place in range(found.num_columns)]
        assert find_excessive_page(file, chunks) == ""
        for chunk, theirs in zip(chunks, expected, strict=True):
            assert chunk.path == theirs.path_in_schema
            assert (chunk.physical_type == BYTE_ARRAY) == (theirs.physical_type == "BYTE_ARRAY")
            sizes = (theirs.total_compressed_size, theirs.total_uncompressed_size)
            assert (chunk.packed, chunk.unpacked) == sizes
            assert chunk.dictionary == theirs.dictionary_page_offset
            assert chunk.start == min(theirs.data_page_offset, theirs.dictionary_page_offset or 1 << 60)
            headers = list(list_page_headers(file.getvalue()[chunk.start : chunk.start + chunk.packed]))
            assert sum(header.length + header.packed for header in headers) == chunk.packed
            assert sum(header.length + header.unpacked for header in headers) == chunk.unpacked


def test_the_encoding_as_differences_has_its_number():
    file = io.BytesIO()
    parquet.write_table(
        pyarrow.table({"a": ["text"]}), file, use_dictionary=False, column_encoding="DELTA_BYTE_ARRAY"
    )
    assert DELTA_BYTE_ARRAY in read_column_chunks(file)[0][0].encodings


@given(st.binary(max_size=80), st.integers(0, 3))
def test_any_bytes_are_a_header_or_none(data, start):
    found = parse_page_header(data, start)
    assert found is None or (min(found) >= 0 and found.length <= len(data))


def test_a_page_that_claims_more_than_its_column_is_refused_before_memory_is_taken():
    file = io.BytesIO(CLAIMING.read_bytes())
    words = "a page of A claims 3847772646146012 bytes, its column has 449"
    assert find_excessive_page(file, read_column_chunks(file)[0][:1]) == words
    before = pyarrow.default_memory_pool().max_memory()
    with pytest.raises(ShardError, match=rf"records 0 to 39 \(row group 0\) cannot be read, .*{words}"):
        list(ParquetInput(file, "shard").read_group(0, ["A"], 10))
    assert pyarrow.default_memory_pool().max_memory() - before < 1 << 20


def test_records_of_such_a_file_are_refused_too(bertdata, tmp_path: Path):
    path = tmp_path / "a.parquet"
    path.write_bytes(CLAIMING.read_bytes())
    failed = bertdata("segment", path, "--output", tmp_path / "out", "--text-field=A", "--sentences=none")
    failed.assert_one_error(
        1, f"{path}: row group 0: is damaged Parquet: a page of A claims 3847772646146012 "
    )


@pytest.mark.parametrize("changes", [{"packed": SMALL_CHUNK_BYTES + 1}, {"packed": -1}, {"start": -1}])
def test_large_chunks_and_impossible_ones_are_left_to_pyarrow(changes):
    file = io.BytesIO(CLAIMING.read_bytes())
    chunk = read_column_chunks(file)[0][0]
    assert find_excessive_page(file, [chunk]) != ""
    assert find_excessive_page(file, [chunk._replace(**changes)]) == ""


def test_a_column_chunk_that_pyarrow_cannot_describe_is_one_line(bertdata, tmp_path: Path):
    path = tmp_path / "a.parquet"
    path.write_bytes(ENDING.read_bytes())
    failed = bertdata("segment", path, "--output", tmp_path / "out", "--text-field=text", "--sentences=none")
    failed.assert_one_error(1, f"{path}: row group 0: is damaged Parquet: Repetition level histogram size")


@given(st.data())
def test_a_damaged_footer_gives_chunks_or_a_value_error(data):
    held = bytearray(ENDING.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        held[-data.draw(st.integers(1, 640))] = data.draw(st.integers(0, 255))
    try:
        groups = read_column_chunks(io.BytesIO(bytes(held)))
    except ValueError:
        return
    chunks = [chunk for group in groups for chunk in group]
    assert all(isinstance(chunk, ColumnChunk) and type(chunk.packed) is int for chunk in chunks)


@pytest.mark.parametrize(
    "data", [b"", b"PAR1", b"PAR1" + bytes(4) + b"PARE", b"PAR1" + b"\x7f" * 4 + b"PAR1"]
)
def test_a_file_without_a_footer_is_a_value_error(data):
    with pytest.raises(ValueError, match="no footer at the end of the file"):
        read_column_chunks(io.BytesIO(data))
