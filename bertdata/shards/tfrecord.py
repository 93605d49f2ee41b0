"""TFRecord shards: writing batches, reading them back, and the canonical form of any TFRecord file."""

from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.errors import ShardError
from bertdata.records import BATCH_COLUMNS, Example, ExampleBatch, ShardLayout
from bertdata.shards.example_proto import NotAnExample, canonical_example, decode_example, encode_example
from bertdata.shards.features import LossyExample, example_of, features_of, layout_of
from bertdata.shards.framing import FRAME_BYTES, Source, frame, read_payloads, truncated
from bertdata.shards.protocol import Sink

BLOCK_BYTES = 1 << 22


class TFRecordWriter:
    """Canonical records, one an example; the bytes written are the content."""

    def __init__(self, sink: Sink, layout: ShardLayout, engine: Engine | None = None) -> None:
        self._sink = sink
        self._layout = layout
        self._engine = engine

    def write(self, batch: ExampleBatch) -> None:
        self._sink.write(encode_batch(batch, self._layout, self._engine))

    def close(self) -> None:
        """Nothing follows the last record."""


def encode_batch(
    batch: ExampleBatch, layout: ShardLayout, engine: Engine | None = None
) -> bytes | memoryview:
    """The framed canonical records of the batch; ShardError if one of its examples cannot be a record."""
    if not use_native(engine or default_engine()):
        try:
            features = (features_of(example, layout) for example in batch.examples())
            return b"".join(frame(encode_example(one)) for one in features)
        except LossyExample as error:
            raise ShardError(str(error)) from None
    try:
        framed: memoryview = kernels.encode_tfrecord(
            *(getattr(batch, column) for column in BATCH_COLUMNS),
            layout.max_seq_length,
            layout.max_predictions_per_seq,
            layout.remask,
        )
    except kernels.LossyExample as error:
        raise ShardError(str(error)) from None
    return framed


class TFRecordReader:
    """Examples of one TFRecord file of any tool; the layout is that of the first record.

    The file must be seekable. ShardError names the record that is damaged or cannot be held in an
    ExampleBatch without loss (weights other than ones then zeros, for instance).
    """

    def __init__(self, file: BinaryIO, name: str, engine: Engine | None = None) -> None:
        self._file = file
        self._name = name
        self._native = use_native(engine or default_engine())
        first = next(read_payloads(file, name), None)
        if first is None:
            raise ShardError(f"{name}: holds no records")
        self.layout = self._checked_layout(first)
        file.seek(0)

    def _checked_layout(self, payload: bytes) -> ShardLayout:
        try:
            return layout_of(decode_example(payload))
        except (NotAnExample, LossyExample) as error:
            raise ShardError(f"{self._name}: record 0: {error}") from None

    def __len__(self) -> int:
        """Number of records, from the frames' headers alone."""
        place, count = 0, 0
        end = self._file.seek(0, 2)
        while place < end:
            self._file.seek(place)
            header = self._file.read(8)
            place += int.from_bytes(header, "little") + 16
            count += 1
            if place > end or len(header) < 8:
                raise truncated(f"{self._name}: record {count - 1}")
        return count

    def batches(self, size: int) -> Iterator[ExampleBatch]:
        self._file.seek(0)
        if self._native and not self.layout.remask:
            yield from self._kernel_batches(size)
            return
        examples = self._examples()
        while group := list(islice(examples, size)):
            yield ExampleBatch.of(group, wide=True)

    def _examples(self) -> Iterator[Example]:
        for record, payload in enumerate(read_payloads(self._file, self._name)):
            try:
                yield example_of(decode_example(payload), self.layout)
            except (NotAnExample, LossyExample) as error:
                raise ShardError(f"{self._name}: record {record}: {error}") from None

    def _kernel_batches(self, size: int) -> Iterator[ExampleBatch]:
        record, rest = 0, b""
        while more := self._file.read(BLOCK_BYTES):
            block, place = memoryview(rest + more), 0
            while True:
                try:
                    columns, used = kernels.decode_tfrecord(
                        block[place:], self.layout.max_seq_length, self.layout.max_predictions_per_seq, size
                    )
                except kernels.RecordError as error:
                    raise _record_error(self._name, record, error) from None
                if not used:
                    break
                place += used
                batch = ExampleBatch(**dict(zip(BATCH_COLUMNS, columns, strict=True)))
                record += len(batch)
                yield batch
            rest = bytes(block[place:])
        if rest:
            raise truncated(f"{self._name}: record {record}")


def canonical_blocks(file: Source, name: str, engine: Engine | None = None) -> Iterator[tuple[bytes, int]]:
    """The canonical form of a TFRecord file in blocks, each with its number of records.

    Works for any records that are ``tf.train.Example`` messages. ShardError names the record that
    is damaged or is none.
    """
    if not use_native(engine or default_engine()):
        for record, payload in enumerate(read_payloads(file, name)):
            try:
                yield frame(canonical_example(payload)), 1
            except NotAnExample as error:
                raise ShardError(f"{name}: record {record}: not a tf.train.Example: {error}") from None
        return
    done, block = 0, b""
    while more := file.read(BLOCK_BYTES):
        block += more
        try:
            canonical, used, records = kernels.canonicalize(block)
        except kernels.RecordError as error:
            raise _record_error(name, done, error) from None
        block = block[used:]
        done += records
        yield canonical, records
    if block:
        raise truncated(f"{name}: record {done}")


def _record_error(name: str, done: int, error: Exception) -> ShardError:
    record, message = error.args
    return ShardError(f"{name}: record {done + record}: {message}")


def split_frames(block: bytes) -> list[bytes]:
    """The whole frames of a block of sound records."""
    frames, place = [], 0
    while place < len(block):
        end = place + int.from_bytes(block[place : place + 8], "little") + FRAME_BYTES
        frames.append(block[place:end])
        place = end
    return frames
