"""Examples that are decoded alone, in both containers from which single ones can be read."""

import io
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from bertdata.errors import ShardError
from bertdata.examples.columns import convert_to_arrays
from bertdata.examples.mlm.batch import MlmBatch, MlmExample
from bertdata.records import ShardLayout
from bertdata.shards.file_view import read_at, read_ranges
from bertdata.shards.mds.container import MdsReader, MdsWriter
from bertdata.shards.tfrecord import TFRecordReader, TFRecordWriter

LAYOUT = ShardLayout(objective="mlm", max_seq_length=9, max_predictions_per_seq=1)
CONTAINERS = ["tfrecord", "mds"]


def open_made(container: str, lengths: list[int]) -> tuple[Any, list[Any]]:
    """A reader of examples with these numbers of ids, and the examples."""
    examples = [
        MlmExample(ids=[100 + number] * length, positions=[], labels=[])
        for number, length in enumerate(lengths)
    ]
    sink = io.BytesIO()
    if container == "mds":
        writer: Any = MdsWriter(sink, LAYOUT, "made")
    else:
        writer = TFRecordWriter(sink, LAYOUT)
    writer.write(convert_to_arrays(MlmBatch.of(examples, wide=False)))
    writer.close()
    file = io.BytesIO(sink.getvalue())
    return MdsReader(file, "made", layout=LAYOUT) if container == "mds" else TFRecordReader(
        file, "made"
    ), examples


@pytest.mark.parametrize("container", CONTAINERS)
def test_rows_of_any_range_are_the_examples_of_the_file(container):
    random = Random(5)
    reader, examples = open_made(container, [random.randint(1, 9) for _ in range(40)])
    assert list(reader) == examples
    for first, count in ((0, 40), (0, 1), (39, 1), (7, 12), (20, 0)):
        offsets = list(reader.find_row_offsets(first, count))
        assert len(offsets) == count + 1
        numbers = [random.randrange(count) for _ in range(10)] if count else []
        sizes = [offsets[number + 1] - offsets[number] for number in numbers]
        data, complete = read_ranges(
            [reader.row_file] * len(numbers), [offsets[number] for number in numbers], sizes
        )
        assert complete == len(numbers)
        found = (
            [row for batch in reader.decode_rows(data, sizes) for row in batch.examples()] if sizes else []
        )
        assert found == [examples[first + number] for number in numbers]


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_faulty_row_is_numbered_from_the_first_and_the_first_is_0_if_not_said(container):
    reader, _ = open_made(container, [3] * 8)
    offsets = list(reader.find_row_offsets(2, 4))
    data = bytearray(read_at(reader.row_file, offsets[0], offsets[-1] - offsets[0]))
    sizes = [end - start for start, end in pairwise(offsets)]
    # The third row loses its last bytes, so it has not as many as it says.
    del data[offsets[3] - offsets[0] - 4 : offsets[3] - offsets[0]]
    sizes[2] -= 4
    for first, words in (({}, "record 2: "), ({"first": 2}, "record 4: "), ({"first": 40}, "record 42: ")):
        with pytest.raises(ShardError, match=f"^made: {words}"):
            for _ in reader.decode_rows(bytes(data), sizes, **first):
                pass
