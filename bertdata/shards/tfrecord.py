"""TFRecord shards: writing batches, reading them back, and the canonical form of any TFRecord file."""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from itertools import islice
from typing import Any, BinaryIO

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.config.settings import LONGEST_SEQUENCE
from bertdata.errors import SettingsError, ShardError
from bertdata.examples.fields import Fields, FieldValues, LossyExample
from bertdata.examples.objective import Objective
from bertdata.examples.objectives import OBJECTIVES, find_objective
from bertdata.records import IDS, ExampleBatch, ShardLayout
from bertdata.shards.example_proto import NotAnExample, canonical_example, decode_example, encode_example
from bertdata.shards.framing import (
    FRAME_BYTES,
    ByteSource,
    count_records,
    frame,
    read_payloads,
    record_starts,
    truncated,
)
from bertdata.shards.protocol import ShardReader, Sink

BLOCK_BYTES = 1 << 22
_PIECE_RECORDS = 16


class TFRecordWriter:
    """Canonical records, one an example. The bytes written are the content."""

    def __init__(
        self, sink: Sink, layout: ShardLayout, engine: Engine | None = None, name: str = "tfrecord shard"
    ) -> None:
        self._sink = sink
        self._layout = layout
        self._engine = engine
        self._name = name
        self._received = 0

    def write(self, batch: ExampleBatch) -> None:
        self._sink.write(encode_batch(batch, self._layout, self._engine, f"{self._name}: ", self._received))
        self._received += len(batch)

    def close(self) -> None:
        """Nothing follows the last record."""


def encode_batch(
    batch: ExampleBatch,
    layout: ShardLayout,
    engine: Engine | None = None,
    where: str = "",
    first: int = 0,
) -> bytes | memoryview:
    """The framed canonical records of the batch. ShardError names an example that cannot be a record.

    where: beginning of the error's message; first: number of the batch's first record.
    """
    objective = find_objective(layout.objective)
    if not use_native(engine or default_engine()):
        return b"".join(
            frame(encode_example(one)) for one in _features(batch, objective, layout, where, first)
        )
    try:
        framed: memoryview = objective.record_format(layout).encode(batch.values())
    except ValueError:  # the twin tells which example it is
        for _ in _features(batch, objective, layout, where, first):
            pass
        raise
    return framed


def _features(
    batch: ExampleBatch, objective: Objective, layout: ShardLayout, where: str, first: int
) -> Iterator[FieldValues]:
    """The features of each example's record."""
    for record, example in enumerate(batch.examples(), first):
        try:
            yield objective.features(example, layout)
        except LossyExample as error:
            raise ShardError(f"{where}record {record}: {error}") from None


class TFRecordReader(ShardReader):
    """Examples of one TFRecord file of any tool. The layout is that of the first record.

    The file must be seekable. objective: that of the examples, where it is known; else the one of
    ours that has exactly these fields. ShardError names the record that is damaged or cannot be held in an
    ExampleBatch without loss (weights other than ones then zeros, for instance).
    """

    def __init__(
        self,
        file: BinaryIO,
        name: str,
        engine: Engine | None = None,
        objective: Objective | None = None,
        padding_id: int | None = None,
    ) -> None:
        """padding_id: the id in empty places. None: that of the first record, or 0 where it has none."""
        self._file = file
        self._name = name
        self._native = use_native(engine or default_engine())
        first = next(read_payloads(file, name), None)
        if first is None:
            raise ShardError(f"{name}: holds no records")
        try:
            features = decode_example(first)
            layout = layout_of_features(features, objective)
        except (NotAnExample, LossyExample) as error:
            raise ShardError(f"{name}: record 0: {error}") from None
        self._objective = find_objective(layout.objective)
        if padding_id is None:
            padding_id = _found_padding(features, self._objective.fields("tfrecord", layout))
        self.layout = replace(layout, padding_id=padding_id)
        file.seek(0)

    def __len__(self) -> int:
        """Number of records, from the frames' headers alone. An iteration under way goes on after it."""
        return count_records(self._file, self._name)

    def batches(self, size: int) -> Iterator[ExampleBatch]:
        self._file.seek(0)
        return self._batches(self._file, size)

    def piece_ends(self) -> Sequence[int]:
        """The ends of runs of 16 records. The index, 16 bytes a run, is made once."""
        return self._pieces()[1]

    def piece(self, number: int) -> ExampleBatch:
        starts, ends = self._pieces()
        self._file.seek(starts[number])
        found = BytesIO(self._file.read(starts[number + 1] - starts[number]))
        [batch] = self._batches(found, _PIECE_RECORDS, ends[number - 1] if number else 0)
        return batch

    def _pieces(self) -> "tuple[array[int], Sequence[int]]":
        """The index: where each run of records starts, at last the file's end, and the ends' numbers."""
        if self.index is None:
            self.index = self._find_pieces()
        found: tuple[array[int], Sequence[int]] = self.index
        return found

    def _find_pieces(self) -> "tuple[array[int], Sequence[int]]":
        starts, records, place = array("Q"), 0, 0
        for records, place in enumerate(record_starts(self._file, self._name)):
            if records % _PIECE_RECORDS == 0:
                starts.append(place)
        if records % _PIECE_RECORDS:
            starts.append(place)
        ends = (min(number * _PIECE_RECORDS, records) for number in range(1, len(starts)))
        return starts, array("Q", ends)

    def _batches(self, file: ByteSource, size: int, first: int = 0) -> Iterator[ExampleBatch]:
        """The examples of the file from where it stands. first: the number of the next."""
        if self._native and self._objective.decodes_natively(self.layout):
            yield from self._kernel_batches(file, size, first)
            return
        examples = self._examples(file, first)
        while group := list(islice(examples, size)):
            yield self._objective.batch_type.of(group, wide=True)

    def _examples(self, file: ByteSource, first: int) -> Iterator[Any]:
        for record, payload in enumerate(read_payloads(file, self._name, first), first):
            try:
                yield self._objective.example(decode_example(payload), self.layout)
            except (NotAnExample, LossyExample) as error:
                raise ShardError(f"{self._name}: record {record}: {error}") from None

    def _kernel_batches(self, file: ByteSource, size: int, first: int) -> Iterator[ExampleBatch]:
        format, batch_type = self._objective.record_format(self.layout), self._objective.batch_type
        names = [column.name for column in batch_type.columns()]
        for columns in decoded_columns(file, self._name, format, size, first):
            yield batch_type(**dict(zip(names, columns, strict=True)))


def decoded_columns(
    file: ByteSource, name: str, format: Any, size: int, first: int = 0
) -> Iterator[list[Any]]:
    """The columns of a file's records by the kernel's format, at most ``size`` records at a time.

    Column 1 holds an item a record. first: the number of the record at which the file stands.
    """
    record, rest = first, b""
    while more := file.read(max(BLOCK_BYTES, len(rest))):
        block, place = memoryview(rest + more), 0
        while True:
            try:
                columns, used = format.decode(block[place:], size)
            except kernels.RecordError as error:
                raise _record_error(name, record, error) from None
            if not used:
                break
            place += used
            record += len(columns[1])
            yield columns
        rest = bytes(block[place:])
    if rest:
        raise truncated(f"{name}: record {record}")


def layout_of_features(features: FieldValues, objective: Objective | None = None) -> ShardLayout:
    """The layout that a record's features have. LossyExample if they are no example's of the objective.

    Without one, the one of ours with exactly these fields.
    """
    forms = [form for one in ([objective] if objective else OBJECTIVES.values()) for form in _forms(one)]
    exact = [form for form in forms if set(form[1]) == set(features)]
    if not exact:
        remedy = "" if objective else "; give --objective NAME, that of its examples"
        raise LossyExample(_misfit(features, [set(fields) for _, fields in forms]) + remedy)
    layout, fields = exact[0]
    sizes = {field.size: len(features[name] or ()) for name, field in fields.items() if field.size}
    if not 1 <= sizes[IDS.size] <= LONGEST_SEQUENCE:
        found = f"{next(name for name, field in fields.items() if field.size == IDS.size)} has"
        raise LossyExample(f"{found} {sizes[IDS.size]} values, expected 1 to {LONGEST_SEQUENCE}")
    return ShardLayout.of_sizes(sizes, objective=layout.objective, remask=layout.remask)


def _found_padding(features: FieldValues, fields: Fields) -> int:
    """The one id in all empty places of a record. 0 where it has none, or several."""
    used = [
        list(features[name] or ()).count(1)
        for name, field in fields.items()
        if field.of == "ids" and field.source == "ones"
    ]
    rows = [
        features[name] for name, field in fields.items() if field.of == "ids" and field.source == "values"
    ]
    empty = set(rows[0][used[0] :]) if used and rows else set()
    return empty.pop() if len(empty) == 1 else 0


def _misfit(features: FieldValues, forms: Sequence[set[str]]) -> str:
    """Name the features beyond all fields of an example, else those that the first form lacks."""
    whole = max((form for form in forms if form < set(features)), key=len, default=None)
    if whole is None:
        return f"lacks {', '.join(sorted(forms[0] - set(features)))}"
    return f"holds more features than such an example has: {', '.join(sorted(set(features) - whole))}"


def _forms(objective: Objective) -> Iterator[tuple[ShardLayout, Fields]]:
    """The layouts that the objective has for TFRecords, their sizes still open, and the fields of each."""
    for remask in (False, True):
        layout = ShardLayout(objective=objective.name, max_seq_length=1, remask=remask)
        try:
            yield layout, objective.fields("tfrecord", layout)
        except SettingsError:
            continue


def canonical_blocks(
    file: ByteSource, name: str, engine: Engine | None = None
) -> Iterator[tuple[bytes, int]]:
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
    while more := file.read(max(BLOCK_BYTES, len(block))):
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
