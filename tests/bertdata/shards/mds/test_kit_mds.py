"""MDS beside what MDSWriter made: the kit's directories, read and written again byte for byte."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertdata.shards.containers import open_reader
from bertdata.shards.mds.compression import decompress
from bertdata.shards.mds.container import MdsWriter
from bertdata.shards.mds.directory import read_directory, write_directory
from bertdata.shards.mds.index import ShardForm, parse_index
from bertdata.shards.mds.names import INDEX_NAME, is_mds_name

MOST = 1 << 24
"""Bytes that a shard of the kit may have."""


@pytest.fixture(scope="session")
def kit_mds(kit: Path) -> Path:
    folder = kit / "encoders" / "mds"
    if not folder.is_dir():
        pytest.skip("the kit has no MDS")
    return folder


def form_of(directory: Path) -> ShardForm:
    return parse_index((directory / INDEX_NAME).read_bytes(), "index")[0].form


def plain(value: Any) -> Any:
    """A value as types.json has it."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return str(value) if isinstance(value, Decimal) else value


@pytest.mark.parametrize("name", ["u16", "types"])
def test_the_same_samples_make_the_same_files(kit_mds, tmp_path, name):
    source = kit_mds / name
    write_directory(str(tmp_path), form_of(source), read_directory(str(source)))
    files = sorted(path.name for path in source.iterdir())
    assert sorted(path.name for path in tmp_path.iterdir()) == files
    for file in files:
        assert (tmp_path / file).read_bytes() == (source / file).read_bytes(), file


def test_compressed_shards_hold_the_same_bytes_and_raw_hashes(kit_mds, tmp_path):
    source = kit_mds / "u32_zstd"
    write_directory(str(tmp_path), form_of(source), read_directory(str(source)))
    indexes = [parse_index((folder / INDEX_NAME).read_bytes(), "index") for folder in (source, tmp_path)]
    assert [entry.raw for entry in indexes[0]] == [entry.raw for entry in indexes[1]]
    for entry in indexes[0]:
        name = entry.stored.basename
        found, expected = ((folder / name).read_bytes() for folder in (tmp_path, source))
        assert decompress(found, "zstd", name, MOST) == decompress(expected, "zstd", name, MOST)


def test_every_type_is_read_as_its_value(kit_mds):
    values = json.loads((kit_mds / "types.json").read_text())
    found = list(read_directory(str(kit_mds / "types")))
    assert len(found) == len(values) == 11
    for sample, expected in zip(found, values, strict=True):
        assert sample["d_nd"].dtype.name == expected.pop("d_dtype")
        for name, kind in {"e_nd_f16": "f2", "f_nd_f32_shape": "f4", "p_f16": "f2", "q_f32": "f4"}.items():
            expected[name] = np.array(expected[name], kind).tolist()
        assert {name: plain(value) for name, value in sample.items()} == expected


@pytest.mark.parametrize("name", ["u16", "u32_zstd"])
def test_ids_are_read_in_bulk_as_one_by_one(kit_mds, name):
    expected = [sample["input_ids"].tolist() for sample in read_directory(str(kit_mds / name))]
    with open_reader(str(kit_mds / name / INDEX_NAME)) as reader:
        assert len(reader) == len(expected)
        assert [example.ids for batch in reader.batches(7) for example in batch.examples()] == expected
        assert reader.layout.max_seq_length == max(map(len, expected))
    names = [path for path in sorted((kit_mds / name).iterdir()) if is_mds_name(path.name)]
    found = []
    for path in names:
        with open_reader(str(path)) as reader:
            found += [example.ids for example in reader]
    assert found == expected


def test_the_writer_in_bulk_makes_the_kits_shards(kit_mds):
    source = kit_mds / "u16"
    with open_reader(str(source / INDEX_NAME)) as reader:
        names = (f"eval-{number}" for number in range(len(reader)))
        for entry in parse_index((source / INDEX_NAME).read_bytes(), "index"):
            found = bytearray()
            with open_reader(str(source / entry.raw.basename)) as shard:
                writer = MdsWriter(
                    _Sink(found), reader.layout, entry.raw.basename, names=names, form=entry.form
                )
                for batch in shard.batches(33):
                    writer.write(batch)
                writer.close()
            assert bytes(found) == (source / entry.raw.basename).read_bytes()


class _Sink:
    def __init__(self, into: bytearray) -> None:
        self._into = into

    def write(self, data: Any) -> None:
        self._into += data
