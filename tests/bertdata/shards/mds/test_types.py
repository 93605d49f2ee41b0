"""Types of MDS on generated values: what is written is read, by definition and in bulk."""

import json
import struct
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.shards.mds.ids import (
    IdDecoder,
    compute_name_sizes,
    compute_sample_sizes,
    encode_ids,
    make_id_form,
)
from bertdata.shards.mds.index import ShardForm
from bertdata.shards.mds.shard_file import decode_sample, divide_by_size, encode_sample
from bertdata.shards.mds.types import DTYPES, find_type

INTEGERS = {"uint8": "<B", "int8": "<b", "uint16": "<H", "int16": "<h", "uint32": "<I", "int32": "<i"}
INTEGERS |= {"uint64": "<Q", "int64": "<q", "int": "<q"}
FLOATS = {"float16": "<e", "float32": "<f", "float64": "<d"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
LENGTHS = st.lists(st.integers(1, 300) | st.sampled_from([255, 256, 257]), min_size=1, max_size=12)


@given(kind=st.sampled_from(sorted(INTEGERS)), data=st.data())
def test_whole_numbers_are_little_endian(kind, data):
    form = INTEGERS[kind]
    bits = 8 * struct.calcsize(form)
    low = 0 if form[1].isupper() else -(1 << (bits - 1))
    value = data.draw(st.integers(low, low + (1 << bits) - 1))
    found = find_type(kind)
    assert found.size == bits // 8
    assert found.encode(value) == struct.pack(form, value)
    assert found.decode(struct.pack(form, value)) == value


@given(kind=st.sampled_from(sorted(FLOATS)), value=st.floats(-60000, 60000))
def test_floats_are_little_endian(kind, value):
    found = find_type(kind)
    assert found.encode(value) == struct.pack(FLOATS[kind], value)
    assert found.decode(found.encode(value)) == struct.unpack(FLOATS[kind], found.encode(value))[0]


@given(
    value=st.one_of(
        st.tuples(st.just("bytes"), st.binary()),
        st.tuples(st.just("jpeg"), st.binary()),
        st.tuples(st.just("str"), st.text()),
        st.tuples(st.just("str_int"), st.integers()),
        st.tuples(st.just("str_float"), st.floats(allow_nan=False)),
        st.tuples(st.just("str_decimal"), st.decimals(allow_nan=False, allow_infinity=False)),
        st.tuples(st.just("json"), JSON),
    )
)
def test_texts_and_bytes_come_back(value):
    kind, written = value
    found = find_type(kind)
    data = found.encode(written)
    assert found.size is None
    assert found.decode(data) == written
    if kind.startswith("str"):
        assert data == str(written).encode()
    if kind == "json":
        assert data == json.dumps(written).encode()


@given(
    dtype=st.sampled_from(sorted(DTYPES.values())),
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)
    | st.sampled_from([(256,), (70000,)]),
    free_type=st.booleans(),
    free_shape=st.booleans(),
)
def test_arrays_are_their_heads_and_values(dtype, shape, free_type, free_shape):
    array = (np.arange(np.prod(shape)) % 100).reshape(shape).astype(dtype)
    if free_type and not free_shape:
        free_shape = True
    name = "ndarray" if free_type else f"ndarray:{dtype}"
    if not free_shape:
        name += ":" + ",".join(map(str, shape))
    found = find_type(name)
    head = bytes([next(code for code, known in DTYPES.items() if known == dtype)]) if free_type else b""
    if free_shape:
        code, form = next(
            c for c in ((0, "<B"), (1, "<H"), (2, "<I")) if max(shape) < 256 ** struct.calcsize(c[1])
        )
        head += bytes([4 * len(shape) + code]) + b"".join(struct.pack(form, length) for length in shape)
    assert found.encode(array) == head + array.tobytes()
    assert found.size == (None if free_shape else array.nbytes)
    again = found.decode(head + array.tobytes())
    assert again.dtype.name == dtype
    assert np.array_equal(again, array)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int", "7"),
        ("int", 1 << 63),
        ("uint8", 256),
        ("str", b"x"),
        ("bytes", "x"),
        ("str_int", 1.5),
        ("str_float", 1),
        ("str_decimal", 1.5),
        ("json", {1, 2}),
        ("ndarray", np.zeros(0)),
        ("ndarray", np.array(3)),
        ("ndarray:uint16", np.zeros(3, np.int16)),
        ("ndarray:uint16:4", np.zeros(3, np.uint16)),
        ("ndarray", np.zeros(3, bool)),
    ],
)
def test_values_of_other_types_are_refused(kind, value):
    with pytest.raises(ValueError, match="."):
        find_type(kind).encode(value)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("int", b"1234567"),
        ("str_int", b"seven"),
        ("str_float", b"x"),
        ("str_decimal", b"x"),
        ("json", b"{"),
        ("str", b"\xff"),
        ("ndarray", b""),
        ("ndarray", b"\x07\x04\x01\x00"),
        ("ndarray", b"\x10"),
        ("ndarray:uint16", b"\x05\x01"),
        ("ndarray:uint16", b"\x04\x02\x00\x00"),
        ("ndarray:uint16:3", b"\x00"),
    ],
)
def test_bytes_of_other_types_are_refused(kind, data):
    with pytest.raises(ValueError, match="."):
        find_type(kind).decode(data)


@pytest.mark.parametrize(
    "kind", ["pkl", "text", "ndarray:bool", "ndarray:uint16:0", "ndarray:uint16:2:3", "str:4"]
)
def test_unsafe_and_unknown_types_are_refused_by_name(kind):
    with pytest.raises(ValueError, match=kind.split(":")[0]):
        find_type(kind)


@given(counts=LENGTHS, wide=st.booleans(), with_len=st.booleans(), first=st.integers(0, 1200))
def test_examples_in_bulk_are_samples_one_by_one(counts, wide, with_len, first):
    rows = [np.arange(count, dtype=np.uint32 if wide else np.uint16) * 7 for count in counts]
    names = [f"häuser-{first + number}" for number in range(len(rows))]
    form = make_id_form(wide=wide, with_len=with_len)
    samples = [{"id": name, "input_ids": row, "len": len(row)} for name, row in zip(names, rows, strict=True)]
    expected = [encode_sample(sample, form) for sample in samples]
    ends = np.cumsum(counts)
    data, found = encode_ids(np.concatenate(rows), ends, names, wide=wide, with_len=with_len)
    assert data == b"".join(expected)
    assert found == list(map(len, expected))
    sizes = compute_sample_sizes(
        np.array(counts), compute_name_sizes("häuser", first, first + len(rows)), wide=wide, with_len=with_len
    )
    assert sizes.tolist() == list(map(len, expected))


@given(
    counts=LENGTHS,
    kinds=st.lists(
        st.sampled_from(["uint8", "uint16", "int32", "int64", "uint64"]), min_size=12, max_size=12
    ),
    kind=st.sampled_from(["ndarray", "ndarray:uint16", "ndarray:int32", "ndarray:uint16:5"]),
    before=st.booleans(),
)
def test_ids_of_any_form_are_decoded_in_bulk(counts, kinds, kind, before):
    form = ShardForm.from_columns({"a" if before else "z": "json", "tokens": kind, "y": "uint16"})
    if kind == "ndarray:uint16:5":
        counts = [5] * len(counts)
    types = kinds if kind == "ndarray" else [kind.split(":")[1]] * len(counts)
    rows = [np.arange(count).astype(type) for count, type in zip(counts, types, strict=False)]
    samples = [{"a": [len(row)], "z": None, "tokens": row, "y": 3} for row in rows]
    data = [encode_sample(sample, form) for sample in samples]
    assert all(
        np.array_equal(decode_sample(one, form)["tokens"], row) for one, row in zip(data, rows, strict=True)
    )
    bounds = np.cumsum([0, *map(len, data)])

    def refuse(wrong, problem):
        assert not wrong.any(), problem(0)

    ids, ends = IdDecoder(form).decode(b"".join(data), bounds, refuse)
    assert np.array_equal(ids, np.concatenate(rows))
    assert ends.tolist() == np.cumsum(counts).tolist()
    assert IdDecoder(form).count_ids(b"".join(data), bounds, refuse).tolist() == counts


@given(sizes=st.lists(st.integers(1, 60), max_size=30), limit=st.integers(74, 200))
def test_shards_are_cut_where_the_writer_cuts_them(sizes, limit):
    """The rule as MDSWriter's own program says it: a sample at a time."""
    form, starts, total = b"{}", [0], 10
    for number, size in enumerate(sizes):
        if limit < total + size + 4:
            starts.append(number)
            total = 10
        total += size + 4
    assert divide_by_size(sizes, form, limit) == ([*starts, len(sizes)] if sizes else [0])
    assert divide_by_size(sizes, form, None) == ([0, len(sizes)] if sizes else [0])


def test_a_later_sample_over_the_limit_gets_a_shard_of_its_own():
    assert divide_by_size([5, 500, 5, 5], b"{}", 60) == [0, 1, 2, 4]
    with pytest.raises(ValueError, match="514 bytes"):
        divide_by_size([500, 5], b"{}", 60)


def test_decimals_keep_their_digits():
    found = find_type("str_decimal")
    assert found.encode(Decimal("1.10")) == b"1.10"
    assert str(found.decode(b"1.10")) == "1.10"
