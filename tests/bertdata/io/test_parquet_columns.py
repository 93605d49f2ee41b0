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
    CHECKED_BYTES,
    DELTA_BYTE_ARRAY,
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
    groups = read_column_chunks(file, ["a", "b", "c"])
    found = parquet.ParquetFile(file).metadata
    assert len(groups) == found.num_row_groups
    for number, chunks in enumerate(groups):
        expected = [found.row_group(number).column(place) for place in range(found.num_columns)]
        assert find_excessive_page(file, chunks) == ""
        for chunk, theirs in zip(chunks, expected, strict=True):
            assert chunk.path == theirs.path_in_schema
            assert (chunk.physical_type == BYTE_ARRAY) == (theirs.physical_type == "BYTE_ARRAY")
            sizes = (theirs.total_compressed_size, theirs.total_uncompressed_size)
            assert (chunk.compressed, chunk.uncompressed) == sizes
            assert chunk.dictionary == theirs.dictionary_page_offset
            assert chunk.start == min(theirs.data_page_offset, theirs.dictionary_page_offset or 1 << 60)
            headers = list(list_page_headers(file.getvalue()[chunk.start : chunk.start + chunk.compressed]))
            assert sum(header.length + header.compressed for header in headers) == chunk.compressed
            assert sum(header.length + header.uncompressed for header in headers) == chunk.uncompressed


def test_the_encoding_as_differences_has_its_number():
    file = io.BytesIO()
    parquet.write_table(
        pyarrow.table({"a": ["text"]}), file, use_dictionary=False, column_encoding="DELTA_BYTE_ARRAY"
    )
    assert DELTA_BYTE_ARRAY in read_column_chunks(file, ["a"])[0][0].encodings


@given(st.binary(max_size=80), st.integers(0, 3))
def test_any_bytes_are_a_header_or_none(data, start):
    found = parse_page_header(data, start)
    assert found is None or (min(found) >= 0 and found.length <= len(data))


def test_a_page_that_claims_more_than_its_column_is_refused_before_memory_is_taken():
    file = io.BytesIO(CLAIMING.read_bytes())
    words = "a page of A claims 3847772646146012 bytes, its column chunk has 449"
    assert find_excessive_page(file, read_column_chunks(file, ["A"])[0]) == words
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


@pytest.mark.parametrize("changes", [{"compressed": CHECKED_BYTES + 1}, {"compressed": -1}, {"start": -1}])
def test_large_chunks_and_impossible_ones_are_left_to_pyarrow(changes):
    file = io.BytesIO(CLAIMING.read_bytes())
    [chunk] = read_column_chunks(file, ["A"])[0]
    assert find_excessive_page(file, [chunk]) != ""
    assert find_excessive_page(file, [chunk._replace(**changes)]) == ""


def encode_integer(value: int) -> bytes:
    """Encode an integer as the next field of a struct, in Thrift's compact protocol."""
    value, found = value << 1, [0x15]
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


ZSTD, BROTLI = 6, 4


@pytest.mark.parametrize(
    ("uncompressed", "compressed", "codec", "is_excessive"),
    [
        (16 << 20, 1, ZSTD, False),
        ((16 << 20) + 1, 1, ZSTD, True),
        (32768 * 600, 600, ZSTD, False),
        (32768 * 600 + 1, 600, ZSTD, True),
        (2**31 - 1, 600, ZSTD, True),
        (2**31 - 1, 600, BROTLI, False),
    ],
)
@pytest.mark.parametrize("total", [0, 4_000_000_000])
def test_a_page_has_at_most_the_ratio_that_zstd_reaches(uncompressed, compressed, codec, is_excessive, total):
    """Whatever the footer says: old versions of DuckDB wrote 0 for the sum, a damaged footer any number."""
    fields = (0, uncompressed, compressed)
    page = b"".join(map(encode_integer, fields)) + b"\0" + bytes(compressed)
    chunk = ColumnChunk("a", BYTE_ARRAY, (0,), codec, len(page), total, 0, None)
    assert bool(find_excessive_page(io.BytesIO(page), [chunk])) == is_excessive


def test_a_column_chunk_that_pyarrow_cannot_describe_is_one_line(bertdata, tmp_path: Path):
    path = tmp_path / "a.parquet"
    path.write_bytes(ENDING.read_bytes())
    failed = bertdata("segment", path, "--output", tmp_path / "out", "--text-field=text", "--sentences=none")
    failed.assert_one_error(1, f"{path}: row group 0: is damaged Parquet: Repetition level histogram size")


def test_every_changed_byte_of_a_footer_gives_chunks_or_a_value_error():
    file = io.BytesIO()
    parquet.write_table(pyarrow.table({"a": ["text"]}), file, store_schema=False, write_statistics=False)
    whole = file.getvalue()
    size = 8 + int.from_bytes(whole[-8:-4], "little")
    outcomes = set()
    for place in range(len(whole) - size, len(whole)):
        for byte in range(256):
            changed = whole[:place] + bytes([byte]) + whole[place + 1 :]
            try:
                groups = read_column_chunks(io.BytesIO(changed), ["a"])
            except ValueError:
                outcomes.add("refused")
                continue
            outcomes.add("read")
            for chunk in (chunk for group in groups for chunk in group):
                sizes = (chunk.compressed, chunk.uncompressed, chunk.start)
                assert all(type(size) is int and abs(size) < 1 << 63 for size in sizes)
    assert outcomes == {"read", "refused"}


@pytest.mark.parametrize(
    "data", [b"", b"PAR1", b"PAR1" + bytes(4) + b"PARE", b"PAR1" + b"\x7f" * 4 + b"PAR1"]
)
def test_a_file_without_a_footer_is_a_value_error(data):
    with pytest.raises(ValueError, match="no footer at the end of the file"):
        read_column_chunks(io.BytesIO(data), ["a"])
