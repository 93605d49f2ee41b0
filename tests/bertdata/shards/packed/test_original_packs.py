"""Packs that the original programs made: read as what went in; ours of the same sequences are equal."""

import io
from array import array

import h5py
import numpy as np
import pytest

from bertdata.records import ShardLayout
from bertdata.shards.example_proto import decode_example
from bertdata.shards.framing import read_payloads
from tests.support.original_packs import OriginalPacks, as_hdf5, as_tfrecord, load_packs, mlperf_fields
from tests.support.packed_rows import read_rows, write_rows

HABANA = ["habana__eval__s128__p20__sample.npz", "habana__part-00000__s512__p80__sample.npz"]
GRAPHCORE = "graphcore__eval__s128__p20__sample.npz"


def _layout(packing: str, name: str) -> ShardLayout:
    length, masks = (int(part[1:]) for part in name.split("__")[2:4])
    return ShardLayout(
        max_seq_length=length, max_predictions_per_seq=masks, packing=packing, sequences_per_row=3
    )


@pytest.fixture(params=HABANA)
def habana(kit, request) -> tuple[OriginalPacks, ShardLayout]:
    name = request.param
    return load_packs(kit / "packing" / name), _layout("habana", name)


@pytest.fixture
def graphcore(kit) -> tuple[OriginalPacks, ShardLayout]:
    return load_packs(kit / "packing" / GRAPHCORE, own_prefix=""), _layout("graphcore", GRAPHCORE)


def test_habanas_packs_are_read_as_the_sequences_that_went_in(habana):
    packs, layout = habana
    reader, found = read_rows(as_hdf5(packs.fields))
    assert found == packs.sequences
    assert reader.layout == layout
    assert {len(row) for row in found} == {1, 2, 3}


def test_our_rows_of_the_same_sequences_are_habanas_value_for_value(habana):
    packs, layout = habana
    with h5py.File(io.BytesIO(write_rows(packs.sequences, layout, "hdf5"))) as ours:
        assert set(ours) == set(packs.fields)
        for name, theirs in packs.fields.items():
            assert ours[name].dtype == theirs.dtype
            assert ours[name].compression == "gzip"
            assert np.array_equal(ours[name], theirs), name


@pytest.mark.parametrize("engine", ["native", "python"])
def test_mlperfs_variant_is_read_and_written(habana, engine):
    packs, layout = habana
    fields = mlperf_fields(packs.fields)
    records = as_tfrecord(fields)
    reader, found = read_rows(records, engine=engine)
    assert found == packs.sequences
    assert reader.layout == layout
    assert write_rows(packs.sequences, layout, "tfrecord", engine=engine) == records


@pytest.mark.parametrize("engine", ["native", "python"])
def test_graphcores_packs_are_read_as_the_sequences_that_went_in(graphcore, engine):
    packs, layout = graphcore
    records = as_tfrecord(packs.fields)
    reader, found = read_rows(records, engine=engine)
    assert found == packs.sequences
    assert reader.layout == layout
    is_mask = packs.fields["packed_masked_lm_mask"] > 0
    assert 0 in packs.fields["packed_masked_lm_positions"][is_mask]  # a legal position there


@pytest.mark.parametrize("engine", ["native", "python"])
def test_our_rows_of_the_same_sequences_are_graphcores_value_for_value(graphcore, engine):
    packs, layout = graphcore
    ours = write_rows(packs.sequences, layout, "tfrecord", engine=engine)
    for row, payload in enumerate(read_payloads(io.BytesIO(ours), "ours")):
        features = decode_example(payload)
        assert set(features) == set(packs.fields)
        for name, theirs in packs.fields.items():
            assert isinstance(features[name], array if theirs.dtype.kind == "f" else list)
            assert list(features[name]) == theirs[row].tolist(), name
