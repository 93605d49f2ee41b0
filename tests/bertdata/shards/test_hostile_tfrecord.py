"""TFRecords made to claim more than they hold: refused by name, within the memory and time of their size."""

import io
import struct
import time
import tracemalloc

import pytest

from bertdata._native import Engine
from bertdata.errors import ShardError
from bertdata.examples.bert.objective import BERT
from bertdata.records import ShardLayout
from bertdata.shards import tfrecord
from bertdata.shards.crc32c import compute_masked_crc32c
from bertdata.shards.example_proto import encode_example
from bertdata.shards.framing import frame_payload
from bertdata.shards.tfrecord import TFRecordReader, read_canonical_blocks
from tests.support.small_shards import plain_row

MEBIBYTE = 1 << 20
ENGINES = pytest.mark.parametrize("engine", ["native", "python"])
REMASKED = ShardLayout(max_seq_length=16, max_predictions_per_seq=3, remask=True)


def read(data: bytes, engine: Engine) -> int:
    return sum(len(batch) for batch in TFRecordReader(io.BytesIO(data), "shard", engine).batches(100))


@ENGINES
@pytest.mark.parametrize(
    ("field", "place", "value", "message"),
    [
        ("input_position", 0, 3_000_000_000, "position 3000000000, expected 0 to 15"),
        ("input_position", 0, -2, "position -2, expected 0 to 15"),
        ("masked_lm_positions", 1, 3_000_000_000, "position 3000000000, expected 0 to 15"),
        ("seq_padding_index", 0, 2_000_000_000, "from 3 to 2000000000 are used, expected them within 16"),
        ("seq_padding_index", 0, 1, "from 3 to 1 are used, expected them within 16"),
        ("mask_padding_index", 0, 2_000_000_000, "slots up to 2000000000 and from 3"),
        ("mask_padding_index", 0, -1, "slots up to -1 and from 3"),
    ],
)
def test_a_remasked_record_takes_no_more_memory_than_its_layout(
    engine: Engine, field: str, place: int, value: int, message: str
) -> None:
    features = BERT.features(plain_row(1), REMASKED)
    assert read(frame_payload(encode_example(features)), engine) == 1
    features[field] = [*features[field][:place], value, *features[field][place + 1 :]]
    tracemalloc.start()
    with pytest.raises(ShardError, match=f"^shard: record 0: .*{message}"):
        read(frame_payload(encode_example(features)), engine)
    assert tracemalloc.get_traced_memory()[1] < MEBIBYTE
    tracemalloc.stop()


@ENGINES
def test_the_time_for_many_features_grows_as_their_number(engine: Engine) -> None:
    """Sixteen times as many features take about sixteen times as long, not 256 times."""

    def seconds(count: int) -> float:
        record = frame_payload(encode_example({f"feature {number}": [1] for number in range(count)}))
        start = time.process_time()
        assert [records for _, records in read_canonical_blocks(io.BytesIO(record), "shard", engine)] == [1]
        return time.process_time() - start

    assert seconds(40_000) < 80 * min(seconds(2_500) for _ in range(3))


@ENGINES
def test_a_length_beyond_the_file_takes_no_memory(engine: Engine) -> None:
    length = struct.pack("<Q", 1 << 31)
    header = length + struct.pack("<I", compute_masked_crc32c(length))
    tracemalloc.start()
    with pytest.raises(ShardError, match=r"^shard: record 0: the file ends inside this record"):
        read(header + bytes(100), engine)
    with pytest.raises(ShardError, match=r"^shard: record 0: the file ends inside this record"):
        list(read_canonical_blocks(io.BytesIO(header + bytes(100)), "shard", engine))
    assert tracemalloc.get_traced_memory()[1] < MEBIBYTE
    tracemalloc.stop()


def test_a_record_of_several_blocks_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tfrecord, "BLOCK_BYTES", 1 << 18)
    payload = encode_example({"bytes": (bytes(750_000),)})
    found = b"".join(
        block for block, _ in read_canonical_blocks(io.BytesIO(frame_payload(payload)), "shard", "native")
    )
    assert found == frame_payload(payload)
