"""Rows that contradict themselves or their layout: one line that names the file and the record."""

import io
from array import array
from collections.abc import Callable
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bertdata.errors import ShardError
from bertdata.shards.example_proto import decode_example, encode_example
from bertdata.shards.framing import frame_payload, read_payloads
from tests.support.packed_rows import layout_of, read_rows, sequence, write_rows

TABLE = [[sequence(4, 20 + i, 1), sequence(6, 40 + i, 2), sequence(3, 60 + i, 0)] for i in range(4)]
"""Rows of 13 ids and 3 masks; the second sequence starts at 4, the third at 10."""
RECORD = 2


def _refused(data: bytes, message: str, engine: Any = "native") -> None:
    with pytest.raises(ShardError, match=f"^shard: record {RECORD}: {message}") as caught:
        read_rows(data, engine=engine)
    assert "\n" not in str(caught.value)


def _hdf5(name: str, spoil: Callable[[h5py.File], None]) -> bytes:
    file = io.BytesIO(write_rows(TABLE, layout_of(name), "hdf5"))
    with h5py.File(file, "r+") as opened:
        spoil(opened)
    return file.getvalue()


HABANA: list[tuple[str, int, int, str]] = [
    ("input_mask", 4, 3, r"input_mask\[5\] is 2, expected ascending numbers of sequences"),
    ("input_mask", 6, 0, r"input_mask\[6\] is 0, expected ascending numbers of sequences"),
    ("input_mask", 12, 4, r"input_mask\[12\] is 4, expected a sequence of the row"),
    ("input_mask", 13, 3, r"segment_ids\[11\] is 1, expected 0: zeros, then ones in each sequence"),
    ("input_mask", 0, 2, r"input_mask\[1\] is 1, expected ascending numbers of sequences"),
    ("input_ids", 14, 9, r"input_ids\[14\] is 9, expected 0: padding is 0"),
    ("input_ids", 3, -1, "sequence 1: id -1, expected 0 to"),
    ("segment_ids", 8, 0, r"segment_ids\[7\] is 1, expected 0: zeros, then ones in each sequence"),
    ("segment_ids", 15, 1, r"segment_ids\[15\] is 1, expected 0: zeros, then ones in each sequence"),
    ("positions", 4, 4, r"positions\[4\] is 4, expected 0: positions count from 0 in each sequence"),
    ("masked_lm_positions", 2, 13, r"masked_lm_positions\[2\] is 13, expected a place in one of the row's"),
    ("masked_lm_positions", 2, 5, r"masked_lm_positions\[2\] is 5, expected ascending positions"),
    ("masked_lm_positions", 1, 4, "sequence 2: masked position 0, expected 1 to 5"),
    ("masked_lm_positions", 4, 11, r"masked_lm_positions\[4\] is 11, expected 0: padding follows"),
    ("masked_lm_positions", 2, 0, r"masked_lm_ids\[2\] is 42, expected 0: padding is 0"),
    ("masked_lm_ids", 0, -5, "sequence 1: label -5, expected 0 to"),
    ("next_sentence_positions", 1, 5, r"next_sentence_positions\[1\] is 5, expected 4: the place of each"),
    ("next_sentence_weights", 2, 0, r"next_sentence_weights\[2\] is 0, expected 1: 1 for each sequence"),
    ("next_sentence_labels", 1, 2, "sequence 2: next label 2, expected 0 to 1"),
]


@pytest.mark.parametrize(("field", "column", "value", "message"), HABANA)
def test_a_row_of_habanas_that_contradicts_itself_is_named(field: str, column: int, value: int, message: str):
    def spoil(opened: h5py.File) -> None:
        opened[field][RECORD, column] = value

    _refused(_hdf5("habana", spoil), message)


def test_a_row_without_sequences_is_named():
    def spoil(opened: h5py.File) -> None:
        for name in opened:
            opened[name][RECORD] = 0

    _refused(_hdf5("habana", spoil), "0 sequences, expected 1 to 3")


def _delete(name: str) -> Callable[[h5py.File], None]:
    return lambda opened: opened.__delitem__(name)


def _replace(name: str, values: Any) -> Callable[[h5py.File], None]:
    def spoil(opened: h5py.File) -> None:
        del opened[name]
        opened[name] = values

    return spoil


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_delete("positions"), "no field positions, expected input_ids, "),
        (
            lambda opened: opened.create_dataset("extra", data=[1]),
            "unknown field extra, expected input_ids, ",
        ),
        (
            _replace("positions", np.zeros((4, 15), "i4")),
            r"positions has shape \(4, 15\), expected \(4, 16\)",
        ),
        (
            _replace("positions", np.zeros((3, 16), "i4")),
            r"positions has shape \(3, 16\), expected \(4, 16\)",
        ),
        (_replace("positions", np.zeros(4, "i4")), r"positions has shape \(4,\), expected two dimensions"),
        (_replace("positions", np.zeros((4, 16), "f4")), "positions is float32, expected integers"),
        (
            _replace("masked_lm_ids", np.zeros((4, 2), "i4")),
            "max_predictions_per_seq is -1, expected 1 to",
        ),
    ],
)
def test_a_file_that_is_not_of_habanas_layout_is_refused(spoil: Callable[[h5py.File], None], message: str):
    with pytest.raises(ShardError, match=f"^shard: {message}"):
        read_rows(_hdf5("habana", spoil))


def _records(name: str, spoil: Callable[[dict[str, Any]], None]) -> bytes:
    """The shard with one record's features changed."""
    payloads = list(read_payloads(io.BytesIO(write_rows(TABLE, layout_of(name), "tfrecord")), name))
    features: dict[str, Any] = decode_example(payloads[RECORD])
    spoil(features)
    payloads[RECORD] = encode_example(features)
    return b"".join(map(frame_payload, payloads))


GRAPHCORE: list[tuple[str, int, int, str]] = [
    ("packed_input_mask", 3, 3, r"packed_input_mask\[4\] is 2, expected ascending numbers of sequences"),
    ("packed_input_mask", 15, 2, r"packed_input_mask\[15\] is 2, expected 1: 1 in the first sequence"),
    ("packed_input_mask", 5, 0, r"packed_input_mask\[5\] is 0, expected ascending numbers of sequences"),
    ("packed_input_ids", 10, 7, r"packed_input_ids\[10\] is 7, expected 0: padding is 0"),
    ("packed_position_ids", 0, 0, r"packed_position_ids\[0\] is 0, expected 1: positions count from 0"),
    ("packed_segment_ids", 6, 0, r"packed_segment_ids\[5\] is 1, expected 0: zeros, then ones"),
    ("packed_masked_lm_positions", 2, 10, r"packed_masked_lm_positions\[2\] is 10, expected a place in one"),
    ("packed_masked_lm_positions", 1, 0, r"packed_masked_lm_positions\[1\] is 0, expected ascending"),
    (
        "packed_masked_lm_positions",
        3,
        4,
        r"packed_masked_lm_positions\[3\] is 4, expected 0: padding follows",
    ),
    ("packed_masked_lm_mask", 1, 1, r"packed_masked_lm_mask\[1\] is 1, expected 2: the number of the"),
    ("packed_masked_lm_mask", 2, 0, r"packed_masked_lm_positions\[2\] is 4, expected 0: padding follows"),
    ("packed_next_sentence_mask", 0, 0, r"packed_input_mask\[8\] is 3, expected a sequence of the row"),
    ("packed_next_sentence_labels", 2, 2, "sequence 1: next label 2, expected 0 to 1"),
    ("packed_input_ids", 2, 1 << 21, "packed_input_ids holds 2097152, expected 0 to 2097151"),
    ("packed_input_ids", 2, -1, "packed_input_ids holds -1, expected 0 to 2097151"),
]


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize(("field", "column", "value", "message"), GRAPHCORE)
def test_a_row_of_graphcores_that_contradicts_itself_is_named(
    field: str, column: int, value: int, message: str, engine: str
):
    def spoil(features: dict[str, Any]) -> None:
        features[field][column] = value

    _refused(_records("graphcore", spoil), message, engine)


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda row: row.pop("positions"), "lacks the integers positions"),
        (lambda row: row.update(extra=[1]), "holds more features than such an example has"),
        (lambda row: row["positions"].pop(), "positions has 15 values, expected 16"),
        (lambda row: row["positions"].append(0), "positions has 17 values, expected 16"),
        (
            lambda row: row.update(masked_lm_weights=[0] * 6),
            "lacks the floats masked_lm_weights",
        ),
        (
            lambda row: row.update(next_sentence_weights=array("f", [1, 0.5, 0])),
            "next_sentence_weights holds -1, expected 0 to",
        ),
        (
            lambda row: row.update(masked_lm_weights=array("f", [2, 2, 2, 0, 0, 0])),
            r"masked_lm_weights\[0\] is 2, expected 1: the number of the sequence",
        ),
    ],
)
def test_a_record_of_mlperfs_variant_that_is_none_is_named(
    spoil: Callable[[dict[str, Any]], None], message: str, engine: str
):
    _refused(_records("habana", spoil), message, engine)


@pytest.mark.parametrize("name", ["habana", "graphcore"])
def test_an_unknown_field_of_the_first_record_is_named(name: str):
    payloads = list(read_payloads(io.BytesIO(write_rows(TABLE, layout_of(name), "tfrecord")), name))
    features: dict[str, Any] = {**decode_example(payloads[0]), "extra": [1]}
    with pytest.raises(ShardError, match="^shard: record 0: unknown field extra, expected "):
        read_rows(frame_payload(encode_example(features)))


def test_a_cut_file_of_records_is_named():
    data = write_rows(TABLE, layout_of("graphcore"), "tfrecord")
    with pytest.raises(ShardError, match="^shard: record 3: the file ends inside this record: truncated"):
        read_rows(data[:-5])


NVIDIA: list[tuple[str, list[int], str]] = [
    ("packed_input_len", [4, 6, 4], "packed_input_len adds up to 14, expected 13 as input_ids has"),
    ("packed_input_len", [4, 9], "2 values of packed_input_len, expected 3 as next_sentence_labels has"),
    ("packed_input_len", [14, -4, 3], "packed_input_len holds -4, expected 0 or more"),
    ("packed_input_len", [10, 0, 3], "sequence 2: 0 ids, expected 1 to 16"),
    ("packed_masked_lm_len", [1, 1, 0], "packed_masked_lm_len adds up to 2, expected 3 as masked_lm_ids has"),
    ("packed_masked_lm_len", [0, 3, 0], "sequence 2: masked position -3, expected 0 to 5"),
    ("masked_lm_positions", [1, 5], "3 values of masked_lm_ids, expected 2 as masked_lm_positions has"),
    ("masked_lm_positions", [1, 6, 5], "sequence 2: masked position 1 after 2, expected ascending positions"),
    ("masked_lm_positions", [1, 5, 10], "sequence 2: masked position 6, expected 0 to 5"),
    ("segment_ids", [0] * 12, "12 values of segment_ids, expected 13 as input_ids has"),
    ("segment_ids", [1, 0] * 6 + [1], "segment_ids 1, expected zeros, then ones in each sequence"),
    ("next_sentence_labels", [0, 3, 0], "sequence 2: next label 3, expected 0 to 1"),
    ("input_ids", [-2] * 13, "sequence 1: id -2, expected 0 to"),
]


@pytest.mark.parametrize(("field", "values", "message"), NVIDIA)
def test_a_row_of_nvidias_that_contradicts_itself_is_named(field: str, values: list[int], message: str):
    def spoil(opened: h5py.File) -> None:
        opened[field][RECORD] = np.array(values)

    _refused(_hdf5("nvidia", spoil), message)


def test_a_row_longer_than_the_layout_is_named():
    def spoil(opened: h5py.File) -> None:
        opened.attrs["bertdata.max_seq_length"] = 12

    with pytest.raises(ShardError, match="^shard: record 0: 13 ids, expected at most 12$"):
        read_rows(_hdf5("nvidia", spoil))


def test_a_file_without_sizes_has_mlperfs():
    def spoil(opened: h5py.File) -> None:
        for name in list(opened.attrs):
            del opened.attrs[name]

    reader, found = read_rows(_hdf5("nvidia", spoil))
    assert found == TABLE
    layout = reader.layout
    sizes = (layout.max_seq_length, layout.max_predictions_per_seq, layout.sequences_per_row)
    assert sizes == (512, 76, 3)


@pytest.mark.parametrize(
    ("name", "spoil", "message"),
    [
        ("nvidia", _delete("packed_masked_lm_len"), "no field packed_masked_lm_len, expected input_ids, "),
        ("nvidia", lambda opened: opened.create_dataset("extra", data=[1]), "unknown field extra, expected "),
        (
            "nvidia",
            lambda opened: opened["input_ids"].resize(3, 0),
            "segment_ids has 4 rows, input_ids has 3",
        ),
        (
            "nvidia",
            lambda opened: opened.attrs.__setitem__("bertdata.sequences_per_row", 0),
            "sequences_per_row is 0, expected 1 to 16",
        ),
        (
            "nvidia",
            lambda opened: opened.attrs.__setitem__("bertdata.max_seq_length", "x"),
            "bertdata.max_seq_length is 'x', expected a number",
        ),
    ],
)
def test_a_file_that_is_not_of_nvidias_layout_is_refused(
    name: str, spoil: Callable[[h5py.File], None], message: str
):
    with pytest.raises(ShardError, match=f"^shard: {message}"):
        read_rows(_hdf5(name, spoil))


def test_an_id_that_16_bits_do_not_hold_is_named():
    with pytest.raises(ShardError, match="^nvidia shard: record 1: id 40000, expected 0 to 32767"):
        write_rows([TABLE[0], [sequence(4, 40_000)]], layout_of("nvidia"), "hdf5")


def _flat(change: Callable[[dict[str, Any]], None], metadata: dict[str, str] | None = None) -> bytes:
    table = pq.read_table(io.BytesIO(write_rows(TABLE, layout_of("flat"), "parquet")))
    rows = table.to_pylist()
    change(rows[RECORD])
    sink = io.BytesIO()
    known = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    schema = table.schema.with_metadata({**known, **(metadata or {})})
    pq.write_table(pa.Table.from_pylist(rows, schema), sink, write_page_checksum=True)
    return sink.getvalue()


FLAT: list[tuple[str, Any, str]] = [
    ("sequence_ends", [4, 10, 14], "sequence_ends ends at 14, expected 13"),
    ("sequence_ends", [10, 4, 13], "sequence_ends holds 4 after 10, expected ascending ends"),
    ("sequence_ends", [-1, 10, 13], "sequence_ends holds -1 after 0, expected ascending ends"),
    ("sequence_ends", [4, 4, 13], "sequence 2: 0 ids, expected 1 to 16"),
    ("sequence_ends", [4, 13], "3 values of first_segment_lengths, expected 2"),
    ("sequence_ends", None, "no sequence_ends, expected a list"),
    ("mask_ends", [1, 3], "2 values of mask_ends, expected 3"),
    ("mask_ends", [1, 3, 2], "mask_ends holds 2 after 3, expected ascending ends"),
    ("mask_ends", [1, 2, 2], "mask_ends ends at 2, expected 3"),
    ("masked_lm_ids", [1, 2], "2 values of masked_lm_ids, expected 3"),
    ("masked_lm_positions", [1, 1, 6], "sequence 2: masked position 6, expected 0 to 5"),
    ("first_segment_lengths", [2, 7, 1], "sequence 2: first length 7, expected 0 to 6"),
    ("next_sentence_labels", [2, 0, 0], "sequence 1: next label 2, expected 0 to 1"),
    ("input_ids", [1] * 12 + [None], "a hole in input_ids, expected numbers only"),
]


@pytest.mark.parametrize(("field", "values", "message"), FLAT)
def test_a_flat_row_that_contradicts_itself_is_named(field: str, values: Any, message: str):
    _refused(_flat(lambda row: row.update({field: values})), message)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"bertdata.packing": "dense"}, "bertdata.packing is 'dense' in the metadata, expected 'flat'"),
        ({"bertdata.max_seq_length": "9"}, "record 0: 13 ids, expected at most 9"),
        ({"bertdata.sequences_per_row": "2"}, "record 0: 3 sequences, expected 1 to 2"),
        ({"bertdata.sequences_per_row": "x"}, "bertdata.sequences_per_row is 'x' in the metadata"),
    ],
)
def test_a_flat_file_of_other_sizes_is_refused(metadata: dict[str, str], message: str):
    with pytest.raises(ShardError, match=f"^shard: {message}"):
        read_rows(_flat(lambda row: None, metadata))
