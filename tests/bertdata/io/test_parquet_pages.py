"""Headers of Parquet's pages: what pyarrow writes is understood, and what claims too much is refused."""

import io
from pathlib import Path

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from bertdata.errors import ShardError
from bertdata.io import parquet_pages
from bertdata.io.parquet_pages import find_excessive_page, parse_page_header
from bertdata.shards.parquet_file import ParquetInput
from tests.support.paths import ROOT

CLAIMING = ROOT / "tests" / "soak" / "corpus" / "lddl" / "f4bd6c6ffa9040e2"
"""A damaged file of LDDL that a fuzzer found. A page of its column A claims more bytes than any disk has."""


def list_columns(file: io.BytesIO) -> list[object]:
    """Return pyarrow's metadata of all column chunks."""
    found = parquet.ParquetFile(file).metadata
    groups = [found.row_group(number) for number in range(found.num_row_groups)]
    return [group.column(number) for group in groups for number in range(group.num_columns)]


@given(
    texts=st.lists(st.text(max_size=30) | st.none(), min_size=1, max_size=200),
    compression=st.sampled_from(["none", "zstd", "snappy", "gzip", "lz4"]),
    version=st.sampled_from(["1.0", "2.0"]),
    dictionary=st.booleans(),
    checksum=st.booleans(),
    statistics=st.booleans(),
)
def test_the_headers_of_pyarrows_pages_lead_from_page_to_page(
    texts, compression, version, dictionary, checksum, statistics
):
    table = pyarrow.table({"a": texts, "b": [[n, -n] for n in range(len(texts))], "c": [1.5] * len(texts)})
    file = io.BytesIO()
    parquet.write_table(
        table, file, compression=compression, data_page_version=version, use_dictionary=dictionary,
        write_page_checksum=checksum, write_statistics=statistics, data_page_size=300, write_batch_size=20,
        row_group_size=90,
    )  # fmt: skip
    columns = list_columns(file)
    assert find_excessive_page(file, columns) == ""
    for column in columns:
        offsets = (column.dictionary_page_offset, column.data_page_offset)
        start = min(offset for offset in offsets if offset is not None)
        chunk = file.getvalue()[start : start + column.total_compressed_size]
        headers = list(parquet_pages._list_page_headers(chunk))
        assert sum(header.length + header.packed for header in headers) == len(chunk)
        assert sum(header.length + header.unpacked for header in headers) == column.total_uncompressed_size


@given(st.binary(max_size=80), st.integers(0, 3))
def test_any_bytes_are_a_header_or_none(data, start):
    found = parse_page_header(data, start)
    assert found is None or (min(found) >= 0 and found.length <= len(data))


def test_a_page_that_claims_more_than_its_column_is_refused_before_memory_is_taken():
    file = io.BytesIO(CLAIMING.read_bytes())
    words = "a page of A claims 3847772646146012 bytes, its column has 449"
    assert find_excessive_page(file, list_columns(file)[:1]) == words
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


@pytest.mark.parametrize("size", [parquet_pages.SMALL_CHUNK_BYTES + 1, -1])
def test_large_chunks_and_impossible_ones_are_left_to_pyarrow(size):
    class Chunk:
        total_compressed_size, total_uncompressed_size = size, 5
        dictionary_page_offset, data_page_offset = None, 4

    assert find_excessive_page(io.BytesIO(CLAIMING.read_bytes()), [Chunk()]) == ""
