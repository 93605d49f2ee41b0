"""Our shards of packed rows, read by the rules of the trainers that they are for."""

import random

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest

from bertdata.examples.bert.batch import BertExample
from bertdata.shards.packed.layouts import LAYOUTS
from bertdata.shards.packed.record_index import RecordIndex, index_name
from schemas import load_schema
from tests.support.packed_readers import READERS, seen
from tests.support.packed_rows import Row, layout_of, write_rows

FORMS = [(name, format) for name, layout in LAYOUTS.items() for format in layout.formats]


def table_of(count: int) -> list[Row]:
    """Rows of 1 to 3 sequences; some full, some of the shortest; ids and labels may be 0 and large."""
    source = random.Random(7)
    table = []
    for number in range(count):
        cuts = [*sorted(source.sample(range(2, 15), number % 3)), source.choice([15, 16])]
        lengths = [end - start for start, end in zip([0, *cuts], cuts, strict=False)]
        table.append([_sequence(length, source) for length in lengths])
    return table


def _sequence(length: int, source: random.Random) -> BertExample:
    positions = sorted(
        source.sample(range(1, length), min(length - 1, source.randrange(3) if length > 3 else 1))
    )
    return BertExample(
        ids=[101, *(source.choice([0, 9, 32_000]) for _ in range(length - 1))],
        first_length=source.randint(1, length),
        positions=positions,
        labels=[source.choice([0, 5, 31_999]) for _ in positions],
        next_label=source.randrange(2),
    )


@pytest.mark.parametrize(("name", "format"), FORMS)
def test_each_layout_is_read_by_its_own_rules(name: str, format: str):
    table = table_of(60)
    shard = write_rows(table, layout_of(name), format, batch=7)
    index = RecordIndex()
    index.feed(shard)
    found = READERS[name, format](shard, index.dump())
    assert found == [[seen(example) for example in row] for row in table]


@pytest.mark.parametrize("name", ["habana", "nvidia"])
def test_the_datasets_are_those_declared(name: str, tmp_path):
    path = tmp_path / "shard.hdf5"
    path.write_bytes(write_rows(table_of(6), layout_of(name), "hdf5"))
    declared = load_schema("packed")[name]["hdf5"]
    widths = {"S": 16, "K": 3, "P+K": 6}
    with h5py.File(path) as opened:
        assert set(opened) == set(declared)
        for field, rule in declared.items():
            dataset = opened[field]
            if rule["shape"] == "*":
                assert h5py.check_vlen_dtype(dataset.dtype) == np.dtype(rule["type"])
                assert dataset.shape == (6,)
            else:
                assert dataset.dtype == np.dtype(rule["type"])
                assert dataset.shape == (6, widths[rule["shape"]])


def test_the_file_of_the_flat_layout_says_what_it_is(tmp_path):
    path = tmp_path / "shard.parquet"
    path.write_bytes(write_rows(table_of(6), layout_of("flat"), "parquet"))
    table = pq.read_table(path)
    assert table.schema.metadata == {
        b"bertdata.packing": b"flat",
        b"bertdata.objective": b"bert",
        b"bertdata.max_seq_length": b"16",
        b"bertdata.max_predictions_per_seq": b"3",
        b"bertdata.sequences_per_row": b"3",
    }
    declared = load_schema("example")["bert"]["flat"]
    assert {field.name: str(field.type.value_type) for field in table.schema} == {
        name: rule["type"] for name, rule in declared.items()
    }


def test_an_index_is_the_same_however_the_bytes_come():
    shard = write_rows(table_of(9), layout_of("graphcore"), "tfrecord")
    whole, pieces = RecordIndex(), RecordIndex()
    whole.feed(shard)
    for start in range(0, len(shard), 7):
        pieces.feed(shard[start : start + 7])
    assert pieces.dump() == whole.dump()
    assert whole.count == 9
    places = [tuple(map(int, line.split())) for line in whole.dump().decode().splitlines()]
    assert [start for start, _ in places] == [sum(size for _, size in places[:n]) for n in range(9)]
    assert sum(size for _, size in places) == len(shard)
    assert index_name("wiki_000.tfrecord") == "wiki_000.index"
