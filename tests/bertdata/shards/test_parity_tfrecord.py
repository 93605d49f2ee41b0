"""TFRecords: the kernel equals the specification, the canonical form equals protobuf's, damage is found."""

import io
from bisect import bisect_right
from collections.abc import Callable
from functools import cache
from itertools import accumulate
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata import _native
from bertdata._native import kernels
from bertdata.errors import ShardError
from bertdata.examples.bert.batch import BertBatch, BertExample
from bertdata.records import ShardLayout
from bertdata.shards import crc32c as specification
from bertdata.shards.example_proto import encode_varint
from bertdata.shards.file_view import read_ranges
from bertdata.shards.framing import frame_payload
from bertdata.shards.tfrecord import TFRecordReader, encode_batch, read_canonical_blocks, split_frames
from tests.support.strategies import examples, layouts, tries

needs_kernels = pytest.mark.skipif(not _native.available(), reason="the kernels are not built")
ENGINES = ["native", "python"] if _native.available() else ["python"]


# Checksums

KNOWN_CHECKSUMS = [  # RFC 3720, B.4; the last is the check value of the CRC catalogues
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (bytes(reversed(range(32))), 0x113FDB5C),
    (b"123456789", 0xE3069283),
    (b"", 0),
]


@pytest.mark.parametrize(("data", "checksum"), KNOWN_CHECKSUMS)
def test_checksums_are_the_published_ones(data, checksum):
    assert specification.compute_crc32c(data) == checksum
    if _native.available():
        assert kernels.crc32c(data) == checksum


@needs_kernels
@tries(4)
@given(st.integers(0, 1 << 30), st.integers(0, 300), st.integers(0, 9))
def test_engines_compute_the_same_checksum(seed, size, offset):
    data = Random(seed).randbytes(size + offset)
    assert kernels.crc32c(memoryview(data)[offset:]) == specification.compute_crc32c(data[offset:])


# Encoding and reading examples


@st.composite
def batches(draw: st.DrawFn, *, smallest_id: int = 1) -> tuple[BertBatch, ShardLayout]:
    layout = draw(layouts(st.booleans()))
    wide = draw(st.booleans())
    rows = examples(layout, smallest_id, (1 << 21) - 1 if wide else (1 << 16) - 1)
    return BertBatch.of(draw(st.lists(rows, min_size=1, max_size=6)), wide=wide), layout


PLAIN_LAYOUT = ShardLayout(max_seq_length=5, max_predictions_per_seq=1)
PLAIN_EXAMPLE = BertExample(ids=[1, 2, 3, 4, 5], first_length=3, positions=[3], labels=[1], next_label=0)


@needs_kernels
@tries(4)
@given(batches(smallest_id=0))
def test_engines_encode_the_same_bytes(case):
    batch, layout = case
    assert bytes(encode_batch(batch, layout, "native")) == encode_batch(batch, layout, "python")


@needs_kernels
@pytest.mark.parametrize("engine", ENGINES)
def test_an_id_that_no_vocabulary_has_is_refused(engine):
    layout = ShardLayout(max_seq_length=5, max_predictions_per_seq=1)
    for bad in (1 << 21, (1 << 32) - 1):
        row = BertExample(ids=[1, 2, bad, 4, 5], first_length=3, positions=[3], labels=[1], next_label=0)
        with pytest.raises(ShardError, match="id"):
            encode_batch(BertBatch.of([row], wide=True), layout, engine)


@needs_kernels
@pytest.mark.parametrize("engine", ENGINES)
def test_more_unmasked_ids_than_slots_are_refused(engine):
    layout = ShardLayout(max_seq_length=8, max_predictions_per_seq=4, remask=True)
    row = BertExample(ids=[1, 2, 3, 4, 5, 6], first_length=3, positions=[1], labels=[7], next_label=0)
    with pytest.raises(ShardError, match="more unmasked ids than max_seq_length - max_predictions_per_seq"):
        encode_batch(BertBatch.of([row], wide=False), layout, engine)


def read(data: bytes, engine: str, size: int = 3) -> list[BertExample]:
    reader = TFRecordReader(io.BytesIO(data), "shard", engine)
    return [example for batch in reader.batches(size) for example in batch.examples()]


@tries(4)
@given(case=batches(), size=st.integers(1, 4))
@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_written_is_read(engine, case, size):
    batch, layout = case
    data = bytes(encode_batch(batch, layout, engine))
    reader = TFRecordReader(io.BytesIO(data), "shard", engine)
    assert reader.layout == layout
    assert len(reader) == len(batch)
    found = list(reader.batches(size))
    assert all(len(group) <= size for group in found)
    assert [example for group in found for example in group.examples()] == list(batch.examples())


@needs_kernels
@tries(2)
@given(case=batches(smallest_id=0))
def test_examples_that_hold_padding_ids_are_read_without_loss_or_refused(case):
    batch, layout = case
    data = bytes(encode_batch(batch, layout, "native"))
    native, python = (outcome(lambda engine=engine: read(data, engine)) for engine in ENGINES)
    assert native == python
    if isinstance(native, list):
        assert bytes(encode_batch(BertBatch.of(native, wide=True), layout, "native")) == data


@tries(2)
@given(case=batches(), seed=st.integers(0, 1 << 30))
@pytest.mark.parametrize("engine", ENGINES)
def test_single_records_of_any_range_are_the_examples_of_the_file(engine, case, seed):
    batch, layout = case
    random = Random(seed)
    reader = TFRecordReader(io.BytesIO(bytes(encode_batch(batch, layout, engine)) * 3), "shard", engine)
    expected = list(batch.examples()) * 3
    for _ in range(3):
        first, stop = sorted(random.choices(range(len(expected) + 1), k=2))
        offsets = list(reader.find_row_offsets(first, stop - first))
        numbers = random.choices(range(first, stop), k=4) if first < stop else []
        starts = [offsets[number - first] for number in numbers]
        sizes = [offsets[number - first + 1] - offsets[number - first] for number in numbers]
        rows, count = read_ranges([reader.row_file] * len(sizes), starts, sizes)
        assert count == len(sizes)
        found = [example for batch in reader.decode_rows(rows, sizes) for example in batch.examples()]
        assert found == [expected[number] for number in numbers]
    # Beyond the file's end there are no offsets.
    assert len(reader.find_row_offsets(len(expected) - 1, 9)) == 2


@pytest.mark.parametrize("engine", ENGINES)
def test_records_beyond_a_block_are_found(engine):
    # of each block, the last record ends beyond it
    frames = [frame_payload(bytes(size)) for size in (3, 0, 700_000, 1_500_000, 5, 700_000)]
    first = bytes(encode_batch(BertBatch.of([PLAIN_EXAMPLE], wide=False), PLAIN_LAYOUT, engine))
    reader = TFRecordReader(io.BytesIO(b"".join([first, *frames])), "shard", engine)
    assert list(reader.find_row_offsets(0, 7)) == list(accumulate(map(len, [first, *frames]), initial=0))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: b"\1" + frame[1:], "record 2: the checksum of its length does not fit: damaged"),
        (lambda frame: frame[:-1], "record 2: the file ends inside this record: truncated"),
        (lambda frame: frame[:7], "record 2: the file ends inside this record: truncated"),
    ],
)
def test_a_damaged_length_is_named_when_offsets_are_searched(engine, change, message):
    frame = bytes(encode_batch(BertBatch.of([PLAIN_EXAMPLE], wide=False), PLAIN_LAYOUT, engine))
    reader = TFRecordReader(io.BytesIO(2 * frame + change(frame)), "shard", engine)
    assert list(reader.find_row_offsets(0, 2)) == [0, len(frame), 2 * len(frame)]
    with pytest.raises(ShardError, match=f"^shard: {message}"):
        reader.find_row_offsets(1, 2)


@tries(2)
@given(case=batches())
@pytest.mark.parametrize("engine", ENGINES)
def test_our_own_records_are_canonical(engine, case):
    data = bytes(encode_batch(*case, engine))
    assert canonical(data, engine) == data
    assert len(split_frames(data)) == len(case[0])


def canonical(data: bytes, engine: str) -> bytes:
    return b"".join(bytes(block) for block, _ in read_canonical_blocks(io.BytesIO(data), "shard", engine))


def outcome(act: Callable[[], Any]) -> Any:
    """The returned value, or the ShardError's message."""
    try:
        return act()
    except ShardError as error:
        return f"ShardError: {error}"


# Any tf.train.Example, however it is written


@st.composite
def varints(draw: st.DrawFn, value: int, most_bytes: int) -> bytes:
    """A number in its shortest encoding or a longer one."""
    encoded = encode_varint(value)
    room = most_bytes - len(encoded)
    padding = draw(st.sampled_from([0, 0, 0, 1, 4, 9])) if room > 0 else 0
    if not padding:
        return encoded
    padding = min(padding, room)
    return encoded[:-1] + bytes((encoded[-1] | 128,)) + b"\x80" * (padding - 1) + b"\0"


@st.composite
def messages(draw: st.DrawFn, field: int, data: bytes) -> bytes:
    tag = draw(varints(field << 3 | 2, 5))
    return tag + draw(varints(len(data), 5)) + data


int64s = st.one_of(
    st.integers(-(1 << 63), (1 << 63) - 1), st.sampled_from([0, 1, 127, 128, -1, 1 << 21, 1 << 62])
)
floats = st.one_of(st.just(b"\0\0\x80\x3f"), st.binary(min_size=4, max_size=4))


@st.composite
def number_lists(draw: st.DrawFn, numbers: st.SearchStrategy[bytes], wire_type: int) -> bytes:
    """Numbers packed, one by one, or both in turn."""
    parts = []
    for group in draw(st.lists(st.lists(numbers, max_size=3), max_size=3)):
        if draw(st.booleans()):
            parts.append(draw(messages(1, b"".join(group))))
        else:
            parts += [draw(varints(1 << 3 | wire_type, 5)) + number for number in group]
    return b"".join(parts)


@st.composite
def int64_numbers(draw: st.DrawFn) -> bytes:
    return draw(varints(draw(int64s) & (1 << 64) - 1, 10))


@st.composite
def features(draw: st.DrawFn) -> bytes:
    """A Feature: empty, one list, or several of which the last kind counts."""
    parts = []
    for kind in draw(st.lists(st.integers(1, 3), max_size=3)):
        if kind == 1:
            strings = draw(st.lists(st.binary(max_size=5), max_size=3))
            body = b"".join([draw(messages(1, string)) for string in strings])
        else:
            body = draw(number_lists(floats, 5) if kind == 2 else number_lists(int64_numbers(), 0))
        parts.append(draw(messages(kind, body)))
    return b"".join(parts)


# Of two keys of which one begins with the other, protobuf's engine upb puts the longer first, its others
# the shorter, as we do. BERT's examples have no such keys.
KEYS = ["a", "b", "input_ids", "é", "\U0001f600", "\uffff"]
KEYS_THAT_BEGIN_ALIKE = ["", "ab", "input_ids_of_b"]


@st.composite
def entries(draw: st.DrawFn, keys: list[str]) -> bytes:
    """A map entry: key and feature in any order, left out or given twice; no key is the key ""."""
    found = draw(st.lists(st.sampled_from(keys), min_size="" not in keys, max_size=2))
    fields = [draw(messages(1, key.encode())) for key in found]
    fields += [draw(messages(2, feature)) for feature in draw(st.lists(features(), min_size=0, max_size=2))]
    return b"".join(draw(st.permutations(fields)))


@st.composite
def payloads(draw: st.DrawFn, keys: list[str] = KEYS) -> bytes:
    """A tf.train.Example as any tool may write it."""
    parts = []
    for group in draw(st.lists(st.lists(entries(keys), max_size=4), max_size=2)):
        body = b"".join([draw(messages(1, entry)) for entry in group])
        parts.append(draw(messages(1, body)))
    return b"".join(parts)


@cache
def example_class() -> Any:
    """tf.train.Example, declared here so that TensorFlow is not needed."""
    pytest.importorskip("google.protobuf", reason="comparing with protobuf needs protobuf")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kind = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="t", syntax="proto3")

    def add(message: Any, name: str, number: int, of: int | str, *, repeated: bool = False) -> Any:
        label = kind.LABEL_REPEATED if repeated else kind.LABEL_OPTIONAL
        field = message.field.add(name=name, number=number, label=label)
        if isinstance(of, str):
            field.type, field.type_name = kind.TYPE_MESSAGE, f".t.{of}"
        else:
            field.type = of
        return field

    for name, of in (("Bytes", kind.TYPE_BYTES), ("Floats", kind.TYPE_FLOAT), ("Ints", kind.TYPE_INT64)):
        add(file.message_type.add(name=name), "value", 1, of, repeated=True)
    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, name in enumerate(("Bytes", "Floats", "Ints"), 1):
        add(feature, name.lower(), number, name).oneof_index = 0
    group = file.message_type.add(name="Features")
    entry = group.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    add(entry, "key", 1, kind.TYPE_STRING)
    add(entry, "value", 2, "Feature")
    add(group, "feature", 1, "Features.FeatureEntry", repeated=True)
    add(file.message_type.add(name="Example"), "features", 1, "Features")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Example"))


def protobufs_canonical_form(payload: bytes) -> bytes:
    return example_class().FromString(payload).SerializeToString(deterministic=True)


@tries(3 / 2)
@given(payload=payloads())
def test_the_canonical_form_is_protobufs_deterministic_serialisation(payload):
    expected = frame_payload(protobufs_canonical_form(payload))
    for engine in ENGINES:
        assert canonical(frame_payload(payload), engine) == expected, engine


@given(payload=payloads(), seed=st.integers(0, 1 << 30))
def test_the_canonical_form_of_records_does_not_depend_on_their_number(payload, seed):
    small = b"\x0a\0"
    records = [payload, small, payload, payload, b"", small, payload]
    Random(seed).shuffle(records)
    expected = b"".join(frame_payload(protobufs_canonical_form(record)) for record in records)
    for engine in ENGINES:
        assert canonical(b"".join(map(frame_payload, records)), engine) == expected, engine


@needs_kernels
@tries(3 / 2)
@given(
    payload=payloads([*KEYS, *KEYS_THAT_BEGIN_ALIKE]),
    places=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=2),
)
def test_engines_accept_and_refuse_the_same_messages(payload, places):
    broken = bytearray(payload)
    for share, byte in places:
        if broken:
            broken[int(share * (len(broken) - 1))] = byte
    data = frame_payload(bytes(broken))
    native, python = (outcome(lambda engine=engine: canonical(data, engine)) for engine in ENGINES)
    if isinstance(native, bytes) or isinstance(python, bytes):
        assert native == python
    else:
        start = "ShardError: shard: record 0: not a tf.train.Example: "
        assert native.startswith(start)
        assert python.startswith(start)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_key_that_is_not_utf8_is_refused_as_protobuf_refuses_it(engine):
    bad = frame_payload(b"\x0a\x08\x0a\x06\x0a\x02k\xff\x12\x00")
    with pytest.raises(ShardError, match=r"^shard: record 1: not a tf.train.Example: "):
        canonical(frame_payload(b"") + bad, engine)


# What an BertBatch cannot hold


def with_feature(key: str, feature: bytes) -> Callable[[bytes], bytes]:
    """Adds or replaces a feature of a record."""
    entry = b"\x0a" + encode_varint(len(key)) + key.encode() + b"\x12" + encode_varint(len(feature)) + feature
    body = b"\x0a" + encode_varint(len(entry)) + entry
    return lambda payload: payload + b"\x0a" + encode_varint(len(body)) + body


def ints(*values: int) -> bytes:
    packed = b"".join(encode_varint(value & (1 << 64) - 1) for value in values)
    body = b"\x0a" + encode_varint(len(packed)) + packed
    return b"\x1a" + encode_varint(len(body)) + body


LOSSY = {
    "a feature of another kind of example": with_feature("extra", ints(1)),
    "a feature that is missing its values": with_feature("input_ids", b""),
    "an id that is negative": with_feature("input_ids", ints(-1, 2, 3, 4, 0)),
    "an id that no vocabulary has": with_feature("input_ids", ints(1, 2, 1 << 21, 4, 0)),
    "an id of more than 32 bits": with_feature("input_ids", ints(1, 2, 1 << 40, 4, 0)),
    "a label that no vocabulary has": with_feature("masked_lm_ids", ints(1 << 21, 0)),
    "an id in the padding": with_feature("input_ids", ints(1, 2, 3, 4, 5)),
    "a longer row": with_feature("input_ids", ints(1, 2, 3, 4, 0, 0)),
    "a hole in the mask": with_feature("input_mask", ints(1, 0, 1, 1, 0)),
    "a mask of twos": with_feature("input_mask", ints(2, 2, 0, 0, 0)),
    "segments out of order": with_feature("segment_ids", ints(0, 1, 0, 1, 0)),
    "segments in the padding": with_feature("segment_ids", ints(0, 0, 1, 1, 1)),
    "a position in the padding": with_feature("masked_lm_positions", ints(4, 0)),
    "a negative position": with_feature("masked_lm_positions", ints(-1, 0)),
    "a label without weight": with_feature("masked_lm_ids", ints(1, 1)),
    "a weight of a half": with_feature("masked_lm_weights", b"\x12\x0a\x0a\x08" + b"\0\0\0\x3f" + bytes(4)),
    "weights that are integers": with_feature("masked_lm_weights", ints(1, 0)),
    "two labels": with_feature("next_sentence_labels", ints(0, 1)),
    "a label of two": with_feature("next_sentence_labels", ints(2)),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("change", LOSSY.values(), ids=LOSSY)
def test_what_an_example_cannot_hold_is_refused_with_its_record(engine, change):
    layout = ShardLayout(max_seq_length=5, max_predictions_per_seq=2)
    row = BertExample(ids=[1, 2, 3, 4], first_length=2, positions=[2], labels=[3], next_label=0)
    sound = encode_batch(BertBatch.of([row], wide=False), layout, "python")
    changed = frame_payload(change(bytes(sound[12:-4])))
    assert read(sound * 2, engine) == [row, row]
    with pytest.raises(ShardError, match=r"^shard: record 2: "):
        read(bytes(sound) * 2 + changed, engine)


# Damage


@st.composite
def shards(draw: st.DrawFn) -> list[bytes]:
    """The frames of a small shard."""
    batch, layout = draw(batches())
    return split_frames(encode_batch(batch, layout, "python"))


def ends_of(frames: list[bytes]) -> list[int]:
    return list(accumulate(map(len, frames)))


def readings(data: bytes) -> dict[str, Any]:
    """The result of each way to read a shard, or its error."""
    return {
        f"{what} {engine}": outcome(lambda engine=engine, how=how: how(data, engine))
        for engine in ENGINES
        for what, how in (("canonical", canonical), ("read", read))
    }


@tries(4)
@given(shards(), st.floats(0, 1), st.integers(0, 7))
def test_a_flipped_bit_anywhere_is_found_and_its_record_named(frames, share, bit):
    data = bytearray(b"".join(frames))
    place = int(share * (len(data) - 1))
    data[place] ^= 1 << bit
    record = bisect_right(ends_of(frames), place)
    for how, found in readings(bytes(data)).items():
        assert str(found).startswith(f"ShardError: shard: record {record}: "), how


@tries(4)
@given(shards(), st.floats(0, 1))
def test_a_shard_cut_off_anywhere_is_found_and_its_record_named(frames, share):
    whole = b"".join(frames)
    place = int(share * (len(whole) - 1))
    ends = [0, *ends_of(frames)]
    record = bisect_right(ends, place) - 1
    for how, found in readings(whole[:place]).items():
        if place == 0:
            assert found == (b"" if "canonical" in how else "ShardError: shard: holds no records"), how
        elif place in ends:  # nothing is missing but whole records, which only a manifest can tell
            assert "ShardError" not in str(found), how
        else:
            expected = f"ShardError: shard: record {record}: the file ends inside this record: truncated"
            assert found == expected, how


@given(shards(), st.binary(min_size=1, max_size=40))
def test_what_follows_the_last_record_is_found(frames, rest):
    for how, found in readings(b"".join(frames) + rest).items():
        assert str(found).startswith(f"ShardError: shard: record {len(frames)}: "), how


@pytest.mark.parametrize("engine", ENGINES)
def test_damage_is_named_beyond_the_first_block_that_is_read(engine, monkeypatch):
    monkeypatch.setattr("bertdata.shards.tfrecord.BLOCK_BYTES", 1000)
    layout = ShardLayout(max_seq_length=64, max_predictions_per_seq=8)
    row = BertExample(ids=[5] * 64, first_length=9, positions=[1, 2], labels=[3, 4], next_label=1)
    frames = split_frames(encode_batch(BertBatch.of([row] * 50, wide=False), layout, "python"))
    assert len(read(b"".join(frames), engine)) == 50
    frames[41] = frames[41][:-1] + bytes((frames[41][-1] ^ 1,))
    for how in (canonical, read):
        with pytest.raises(ShardError, match=r"^shard: record 41: the checksum of its data does not fit"):
            how(b"".join(frames), engine)
