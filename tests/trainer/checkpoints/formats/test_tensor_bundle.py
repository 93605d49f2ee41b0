"""TensorFlow's bundles: TensorFlow reads ours, we read its; whatever is damaged is one line."""

import json
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bertdata.errors import BertDataError, MissingExtraError
from bertdata.shards.crc32c import compute_masked_checksum, compute_masked_crc32c
from bertdata.shards.example_proto import encode_varint
from tests.support.checkpoint_outputs import with_snappy_blocks
from trainer.checkpoints.formats.kinds import read_checkpoint
from trainer.checkpoints.formats.tensor_bundle import table, wire
from trainer.checkpoints.formats.tensor_bundle.bundle import Bundle, BundleEntry, parse_header, write_bundle
from trainer.checkpoints.formats.tensor_bundle.object_graph import GRAPH_KEY, encode_graph, parse_graph
from trainer.checkpoints.formats.tensor_bundle.table import read_table, write_table
from trainer.errors import CheckpointError

NAMES = ["tf1_google/model.ckpt-3", "tf1_mlperf_lamb/model.ckpt-3"]
GARDEN = ["tf2_encoder_2.3.0/bert_model.ckpt-1", "tf2_pretrainer_2.5.0/bert_model.ckpt-1"]


# The format


@pytest.mark.parametrize("name", [*NAMES, *GARDEN])
def test_every_variable_of_tensorflows_files_is_read(kit, name):
    path = kit / "checkpoints" / name
    bundle = Bundle(str(path))
    listed = json.loads((path.parent / "variables.json").read_text(encoding="utf-8"))
    assert {key: list(entry.shape) for key, entry in bundle.entries.items()} == dict(listed)
    for key, entry in bundle.entries.items():
        if key == GRAPH_KEY:
            text = bundle.read_text(key)
            assert encode_graph(parse_graph(text)) == text
        else:
            assert tuple(bundle.read(key).shape) == entry.shape


def test_snappy_blocks_hold_the_same_entries(kit, tmp_path):
    plain = Bundle(str(kit / "checkpoints" / NAMES[0]))
    assert Bundle(str(with_snappy_blocks(kit, tmp_path / "copy") / "model.ckpt-3")).entries == plain.entries


def test_without_the_library_snappy_blocks_name_the_extra(kit, tmp_path, monkeypatch):
    place = with_snappy_blocks(kit, tmp_path / "copy")
    monkeypatch.setitem(sys.modules, "cramjam", None)
    with pytest.raises(
        MissingExtraError, match=r"compressed with Snappy, and cramjam is not installed.*train"
    ):
        Bundle(str(place / "model.ckpt-3"))


KEYS = st.dictionaries(st.binary(min_size=1, max_size=12), st.binary(max_size=20), max_size=60)


@given(KEYS, st.sampled_from([1, 40, 1 << 18]))
def test_a_table_gives_back_its_entries(tmp_path_factory, entries, block_bytes):
    path = tmp_path_factory.mktemp("table") / "index"
    with pytest.MonkeyPatch.context() as patch, path.open("wb") as file:
        patch.setattr(table, "_BLOCK_BYTES", block_bytes)
        write_table(file, sorted(entries.items()))
    assert list(read_table(path.read_bytes(), "index")) == sorted(entries.items())


@given(st.integers(0, 2**64 - 1))
def test_varints_are_those_of_protocol_buffers(value):
    from google.protobuf.internal.encoder import _VarintBytes

    assert encode_varint(value) == _VarintBytes(value)
    assert wire.read_varint(encode_varint(value), 0) == (value, len(encode_varint(value)))


@given(st.binary(max_size=300))
def test_the_checksum_of_the_kernel_is_its_twins(data):
    assert compute_masked_checksum(data) == compute_masked_crc32c(data)


def write_all_kinds(prefix: Path) -> dict[str, torch.Tensor]:
    """A bundle of a few tensors, a long text and many names; returns the tensors."""
    tensors = {
        "scalar": torch.tensor(7),
        "empty": torch.zeros(0, 3),
        "matrix": torch.randn(5, 3).t(),
        **{f"many/{number:05d}/with/a/long/name": torch.full((2,), float(number)) for number in range(300)},
    }
    with write_bundle(str(prefix)) as bundle:
        for name, tensor in tensors.items():
            bundle.add(name, tensor)
        bundle.add_text("text", b"words " * 100)
    return tensors


def test_what_is_written_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "_BLOCK_BYTES", 512)
    tensors = write_all_kinds(tmp_path / "made")
    bundle = Bundle(str(tmp_path / "made"))
    assert bundle.entries.keys() == {*tensors, "text"}
    assert all(torch.equal(bundle.read(name), tensor) for name, tensor in tensors.items())
    assert bundle.read_text("text") == b"words " * 100


@pytest.mark.thorough
def test_tensorflow_reads_what_is_written(tmp_path, monkeypatch):
    import tensorflow

    monkeypatch.setattr(table, "_BLOCK_BYTES", 512)
    tensors = write_all_kinds(tmp_path / "made")
    found = tensorflow.train.load_checkpoint(str(tmp_path / "made"))
    assert found.get_variable_to_shape_map().keys() == {*tensors, "text"}
    for name, tensor in tensors.items():
        assert (found.get_tensor(name) == tensor.numpy()).all(), name
        assert found.get_tensor(name).shape == tuple(tensor.shape)
    assert found.get_tensor("text") == b"words " * 100


TYPES = {
    torch.float32: 1,
    torch.float64: 2,
    torch.int32: 3,
    torch.uint8: 4,
    torch.int16: 5,
    torch.int8: 6,
    torch.int64: 9,
    torch.bool: 10,
    torch.bfloat16: 14,
    torch.float16: 19,
}
"""The numbers of the types in TensorFlow's types.proto."""


def test_numbers_of_every_type_come_back_and_have_tensorflows_type(tmp_path):
    tensors = {str(dtype): torch.tensor([0, 1, 100]).to(dtype) for dtype in TYPES}
    with write_bundle(str(tmp_path / "made")) as written:
        for name, tensor in tensors.items():
            written.add(name, tensor)
    bundle = Bundle(str(tmp_path / "made"))
    for (name, tensor), number in zip(tensors.items(), TYPES.values(), strict=True):
        assert bundle.entries[name].dtype == number
        assert bundle.read(name).dtype == tensor.dtype
        assert torch.equal(bundle.read(name), tensor)


def test_several_data_files_are_read(tmp_path):
    """The entries' shards and offsets decide, as for a program that wrote on several machines."""
    with write_bundle(str(tmp_path / "one")) as bundle:
        bundle.add("first", torch.arange(3))
        bundle.add("second", torch.arange(4.0))
    entries = Bundle(str(tmp_path / "one")).entries
    header = wire.encode_number_field(1, 2) + wire.encode_bytes_field(3, wire.encode_number_field(1, 1))
    second = (
        entries["second"].encode().replace(wire.encode_number_field(4, 24), wire.encode_number_field(3, 1))
    )
    with (tmp_path / "two.index").open("wb") as file:
        write_table(file, [(b"", header), (b"first", entries["first"].encode()), (b"second", second)])
    data = (tmp_path / "one.data-00000-of-00001").read_bytes()
    (tmp_path / "two.data-00000-of-00002").write_bytes(data[:24])
    (tmp_path / "two.data-00001-of-00002").write_bytes(data[24:])
    read = Bundle(str(tmp_path / "two"))
    assert read.read("first").tolist() == [0, 1, 2]
    assert read.read("second").tolist() == [0.0, 1.0, 2.0, 3.0]


# Damage


@pytest.fixture
def copy(kit, tmp_path) -> Path:
    """A copy of a TensorFlow 1 checkpoint that may be damaged; its prefix."""
    for path in (kit / "checkpoints" / "tf1_mlperf_lamb").iterdir():
        shutil.copyfile(path, tmp_path / path.name)
    return tmp_path / "model.ckpt-3"


def read_all(prefix: Path) -> None:
    """Read every variable of a bundle."""
    bundle = Bundle(str(prefix))
    for name in bundle.entries:
        bundle.read(name)


def refused(path: Path, read: Callable[[], object]) -> str:
    """The message of the refusal, which is one line that names the file."""
    with pytest.raises(BertDataError) as caught:
        read()
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


FLIPPED = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@FLIPPED
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
@pytest.mark.parametrize("name", ["plain", "snappy"])
def test_every_flipped_bit_of_an_index_is_noticed(kit, tmp_path, name, place, bit):
    ending = "index" if name == "plain" else "index-with-snappy-blocks"
    data = bytearray((kit / "checkpoints" / f"{NAMES[0]}.{ending}").read_bytes())
    data[int(place * len(data))] ^= 1 << bit
    path = tmp_path / "flipped.index"
    path.write_bytes(data)
    refused(path, lambda: Bundle(str(tmp_path / "flipped")))


@pytest.mark.parametrize("ending", ["index", "index-with-snappy-blocks"])
def test_every_flipped_bit_of_the_footer_is_noticed(kit, tmp_path, ending):
    sound = (kit / "checkpoints" / f"{NAMES[0]}.{ending}").read_bytes()
    path = tmp_path / "flipped.index"
    for place in range(len(sound) - 48, len(sound)):
        for bit in range(8):
            data = bytearray(sound)
            data[place] ^= 1 << bit
            path.write_bytes(data)
            refused(path, lambda: Bundle(str(tmp_path / "flipped")))


@FLIPPED
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_every_flipped_bit_of_the_data_is_noticed(copy, place, bit):
    path = copy.with_name(f"{copy.name}.data-00000-of-00001")
    sound = path.read_bytes()
    data = bytearray(sound)
    data[int(place * len(data))] ^= 1 << bit
    path.write_bytes(data)
    try:
        assert "the checksum does not fit: damaged" in refused(path, lambda: read_all(copy))
    finally:
        path.write_bytes(sound)


@given(share=st.floats(0, 1, exclude_max=True))
@FLIPPED
@pytest.mark.parametrize("ending", ["index", "data-00000-of-00001"])
def test_a_truncated_file_is_one_line(copy, ending, share):
    path = copy.with_name(f"{copy.name}.{ending}")
    sound = path.read_bytes()
    path.write_bytes(sound[: int(share * len(sound))])
    try:
        refused(path, lambda: read_all(copy))
    finally:
        path.write_bytes(sound)


def test_a_foreign_index_is_one_line(tmp_path):
    for content in (
        b"",
        b"words\n" * 100,
        bytes(range(256)),
        bytes(40) + struct.pack("<Q", 0xDB4775248B80FB57),
    ):
        path = tmp_path / "foreign.index"
        path.write_bytes(content)
        refused(path, lambda: Bundle(str(tmp_path / "foreign")))


@pytest.mark.parametrize("value", [0, 1, 2**63 - 1, -1, -(2**63)])
def test_numbers_of_messages_have_a_sign(value):
    """Protocol buffers write a negative number as its two's complement in 64 bits."""
    message = encode_varint(1 << 3) + encode_varint(value % 2**64)
    assert wire.read_message(message, int) == [value]


@pytest.mark.parametrize(("sizes", "is_possible"), [((2**31, 2**31), True), ((2**31, 2**31 + 1), False)])
def test_a_shape_has_at_most_the_elements_that_64_bits_count(sizes, is_possible):
    """2^62 elements of 2 bytes are 2^63 bytes."""
    data = BundleEntry(dtype=1, shape=sizes, shard=0, offset=0, size=0, crc=0).encode()
    if is_possible:
        assert BundleEntry.parse(data).shape == sizes
    else:
        with pytest.raises(wire.WireError, match="a shape that no tensor has"):
            BundleEntry.parse(data)


def test_a_compressed_block_that_claims_too_much_is_refused_before_memory_is_taken():
    with pytest.raises(wire.WireError, match="a compressed block of 15 bytes that claims 1099511627776"):
        table._decompress(encode_varint(2**40) + bytes(9), "index")


@given(st.binary(max_size=200))
def test_any_bytes_as_messages_give_a_wire_error_or_a_message(data):
    for parse in (parse_graph, BundleEntry.parse, parse_header):
        try:
            parse(data)
        except wire.WireError:
            continue


def test_a_missing_data_file_is_named(copy):
    copy.with_name(f"{copy.name}.data-00000-of-00001").unlink()
    assert "no such file" in refused(Path(f"{copy}.data-00000-of-00001"), lambda: read_all(copy))


def test_an_object_graph_that_names_another_variable_is_refused(kit, tmp_path):
    source = Bundle(str(kit / "checkpoints" / GARDEN[1]))
    for key in (GRAPH_KEY, "encoder/layer_with_weights-7/bias/.ATTRIBUTES/VARIABLE_VALUE"):
        with write_bundle(str(tmp_path / "bert_model.ckpt")) as bundle:
            for name in source.entries:
                if name != key:
                    tensor = source.read_text(name) if name == GRAPH_KEY else source.read(name)
                    add = bundle.add_text if name == GRAPH_KEY else bundle.add
                    add(name, tensor)
        with pytest.raises(CheckpointError) as caught:
            read_checkpoint(str(tmp_path / "bert_model.ckpt"))
        found = "no BERT" if key == GRAPH_KEY else f"holds no {key}"
        assert found in str(caught.value)


@FLIPPED
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_of_a_pytorch_file_is_one_line_or_changes_nothing(kit, tmp_path, place, bit):
    """Names and sizes stand twice in the archive, and only one of them is read."""
    source = kit / "checkpoints" / "pytorch_nvidia" / "ckpt_0.pt"
    data = bytearray(source.read_bytes())
    data[int(place * len(data))] ^= 1 << bit
    path = tmp_path / "flipped.pt"
    path.write_bytes(data)
    found, message = None, f"{path}: "
    try:
        found = {name: item.read() for name, item in read_checkpoint(str(path)).weights.items()}
    except BertDataError as error:
        message = str(error)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    if found is not None:
        wanted = {name: item.read() for name, item in read_checkpoint(str(source)).weights.items()}
        assert found.keys() == wanted.keys()
        assert all(torch.equal(found[name], wanted[name]) for name in wanted)
