"""Rows with any values changed: read as they are, or refused in one line; never another exception."""

import io
from array import array
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertdata.errors import ShardError
from bertdata.shards.containers import make_reader
from bertdata.shards.example_proto import decode_example, encode_example
from bertdata.shards.framing import frame_payload, read_payloads
from bertdata.shards.packed.layouts import LAYOUTS
from schemas import load_schema
from tests.support.packed_rows import Row, layout_of, read_rows, sequence, write_rows

FORMS = [(name, format) for name, layout in LAYOUTS.items() for format in layout.formats]
TABLE = [[sequence(4, 20 + i, 1), sequence(6, 40 + i, 2), sequence(3, 60 + i, 0)] for i in range(2)]
SHARDS = {(name, format): write_rows(TABLE, layout_of(name), format) for name, format in FORMS}
FIELDS = {
    (name, format): load_schema("packed")[name][format]
    if name != "flat"
    else load_schema("example")["bert"][name]
    for name, format in FORMS
}
VALUES = st.one_of(st.integers(-2, 20), st.sampled_from([127, 32_767, 2**31 - 1, -(2**31)]))


def _changed_hdf5(data: bytes, field: str, draw: Any) -> bytes:
    file = io.BytesIO(data)
    with h5py.File(file, "r+") as opened:
        dataset = opened[field]
        row = draw(st.integers(0, 1))
        kind = h5py.check_vlen_dtype(dataset.dtype) or dataset.dtype
        if dataset.ndim == 2:
            values = dataset[row].astype(np.int64)
            values[draw(st.integers(0, len(values) - 1))] = draw(VALUES)
        else:
            values = np.array(draw(st.lists(VALUES, max_size=20)), np.int64)
        dataset[row] = np.clip(values, np.iinfo(kind).min, np.iinfo(kind).max).astype(kind)
    return file.getvalue()


def _changed_tfrecord(data: bytes, field: str, draw: Any) -> bytes:
    payloads = list(read_payloads(io.BytesIO(data), "shard"))
    row = draw(st.integers(0, 1))
    features: dict[str, Any] = decode_example(payloads[row])
    values = list(features[field])
    values[draw(st.integers(0, len(values) - 1))] = draw(VALUES)
    features[field] = array("f", values) if isinstance(features[field], array) else values
    payloads[row] = encode_example(features)
    return b"".join(map(frame_payload, payloads))


def _changed_parquet(data: bytes, field: str, draw: Any) -> bytes:
    table = pq.read_table(io.BytesIO(data))
    rows = table.to_pylist()
    values = draw(st.lists(VALUES, max_size=20))
    limits = np.iinfo(str(table.schema.field(field).type.value_type))
    rows[draw(st.integers(0, 1))][field] = [min(max(value, limits.min), limits.max) for value in values]
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, table.schema), sink, write_page_checksum=True)
    return sink.getvalue()


CHANGES = {"hdf5": _changed_hdf5, "tfrecord": _changed_tfrecord, "parquet": _changed_parquet}


def _read(data: bytes, engine: Any = "native") -> tuple[list[Row], str]:
    """The rows, or what the reader says; "" where it reads them."""
    try:
        return read_rows(data, engine=engine)[1], ""
    except ShardError as error:
        return [], str(error)


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize(("name", "format"), FORMS)
@settings(max_examples=settings().max_examples // 3)
@given(st.data())
def test_changed_values_are_read_or_refused(name: str, format: str, engine: Any, data: st.DataObject):
    changed = SHARDS[name, format]
    for _ in range(data.draw(st.integers(1, 3))):
        field = data.draw(st.sampled_from(sorted(FIELDS[name, format])))
        changed = CHANGES[format](changed, field, data.draw)
    found, refusal = _read(changed, engine)
    if refusal:
        assert refusal.startswith("shard: record ")
        assert "\n" not in refusal
    else:  # what is read has no second form
        ours = write_rows(found, layout_of(name), format)
        assert _read(ours) == (found, "")
        assert ours == changed or format != "tfrecord"


@pytest.mark.parametrize(("name", "format"), FORMS)
@settings(max_examples=settings().max_examples // 3)
@given(st.data())
def test_changed_bytes_are_read_or_refused(name: str, format: str, data: st.DataObject):
    changed = bytearray(SHARDS[name, format])
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(8, len(changed) - 1))] = data.draw(st.integers(0, 255))
    length = data.draw(st.just(len(changed)) | st.integers(8, len(changed)))
    try:
        reader = make_reader(io.BytesIO(changed[:length]), "shard")
        refusal = "" if sum(len(batch) for batch in reader.batches(3)) else "nothing"
    except ShardError as error:
        refusal = str(error)
    assert "\n" not in refusal


@pytest.mark.parametrize(("odd", "shown"), [(b"\n", "\\next_sentence"), (b"\x80", "b'\\x80ext_sentence")])
def test_an_odd_name_of_a_dataset_is_shown_in_one_line(odd: bytes, shown: str) -> None:
    """A dataset of HDF5 may have any bytes as its name."""
    data = SHARDS["habana", "hdf5"].replace(b"next_sentence_weights", odd + b"ext_sentence_weights")
    with pytest.raises(ShardError) as caught:
        make_reader(io.BytesIO(data), "shard")
    assert "\n" not in str(caught.value)
    assert f"has also {shown}" in str(caught.value)
