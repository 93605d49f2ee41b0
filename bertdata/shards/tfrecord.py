"""Write and read TFRecord shards, and convert any TFRecord file to canonical form."""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from itertools import islice
from typing import IO, Any, BinaryIO

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.config.settings import LONGEST_SEQUENCE
from bertdata.errors import SettingsError, ShardError
from bertdata.examples.fields import Fields, FieldValues, LossyExample
from bertdata.examples.objective import Objective
from bertdata.examples.objectives import OBJECTIVES, find_objective
from bertdata.records import IDS, ExampleBatch, ShardLayout
from bertdata.shards.example_proto import NotAnExample, canonicalise_example, decode_example, encode_example
from bertdata.shards.file_view import find_file_size, read_at
from bertdata.shards.framing import (
    FRAME_BYTES,
    ByteSource,
    count_records,
    find_record_ends,
    find_record_starts,
    frame_payload,
    make_truncation_error,
    read_payloads,
)
from bertdata.shards.protocol import ShardReader, Sink

BLOCK_BYTES = 1 << 20  # small, because a trainer may have hundreds of files open
_PIECE_RECORDS = 16


class TFRecordWriter:
    """Writer of examples to TFRecord in canonical form, that is, as protobuf's deterministic serialisation
    writes it.

    The md5 of the file is therefore the content md5 of its examples.
    """

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
        """Do nothing, because a TFRecord file has no footer."""


def encode_batch(
    batch: ExampleBatch,
    layout: ShardLayout,
    engine: Engine | None = None,
    where: str = "",
    first: int = 0,
) -> bytes | memoryview:
    """Encode a batch as TFRecord records in canonical form. Return the bytes of all records.

    Raises ShardError, which names an example that cannot be stored in a record.

    where: name of the shard, for errors.
    first: number of the batch's first record.
    """
    objective = find_objective(layout.objective)
    if not use_native(engine or default_engine()):
        return b"".join(
            frame_payload(encode_example(one))
            for one in _make_features(batch, objective, layout, where, first)
        )
    try:
        framed: memoryview = objective.record_format(layout).encode(batch.values())
    except ValueError:  # The Python version below finds the faulty example and names it.
        for _ in _make_features(batch, objective, layout, where, first):
            pass
        raise
    return framed


def _make_features(
    batch: ExampleBatch, objective: Objective, layout: ShardLayout, where: str, first: int
) -> Iterator[FieldValues]:
    """Yield for each example the features of its record.

    where: name of the shard, for errors.
    first: number of the batch's first record.
    """
    for record, example in enumerate(batch.examples(), first):
        try:
            yield objective.features(example, layout)
        except LossyExample as error:
            raise ShardError(f"{where}record {record}: {error}") from None


class TFRecordReader(ShardReader):
    """Reader of a TFRecord file that any program may have written. The first record determines the layout.

    The file must be seekable. Raises ShardError, which names a record that is damaged, or that an example
    cannot represent exactly, for instance because its input mask is not ones followed by zeros.
    """

    def __init__(
        self,
        file: BinaryIO,
        name: str,
        engine: Engine | None = None,
        objective: Objective | None = None,
        padding_id: int | None = None,
    ) -> None:
        """Read the first record and find the layout.

        objective: the examples' objective. None takes the built-in objective with exactly the file's fields.
        padding_id: id at padded positions. None takes the id in the first record. If that record has no
            padding, it is 0.
        """
        self._file = file
        self._name = name
        self._native = use_native(engine or default_engine())
        self._known_starts = {0: 0}  # byte offsets of some records, by number
        first = next(read_payloads(file, name), None)
        if first is None:
            raise ShardError(f"{name}: holds no records")
        try:
            features = decode_example(first)
            layout = find_layout_of_features(features, objective)
        except (NotAnExample, LossyExample) as error:
            raise ShardError(f"{name}: record 0: {error}") from None
        self._objective = find_objective(layout.objective)
        if padding_id is None:
            padding_id = _find_padding(features, self._objective.fields("tfrecord", layout))
        self.layout = replace(layout, padding_id=padding_id)
        file.seek(0)

    def __len__(self) -> int:
        """Return the number of records, counted by their headers.

        A running iteration over batches is not disturbed.
        """
        return count_records(self._file, self._name)

    def batches(self, size: int) -> Iterator[ExampleBatch]:
        self._file.seek(0)
        return self._decode_batches(self._file, size)

    def find_piece_ends(self) -> Sequence[int]:
        """Return for each piece of 16 records the number of records up to its end.

        The first call finds the pieces by reading the header of each record. It stores 16 bytes per piece.
        """
        return self._get_index()[1]

    def read_piece(self, number: int) -> ExampleBatch:
        starts, ends = self._get_index()
        self._file.seek(starts[number])
        found = BytesIO(self._file.read(starts[number + 1] - starts[number]))
        [batch] = self._decode_batches(found, _PIECE_RECORDS, ends[number - 1] if number else 0)
        return batch

    def find_row_offsets(self, first: int, count: int) -> "array[int]":
        """Return the byte offset of each of some consecutive records, and the offset after the last one.

        The lengths of records are read from the nearest earlier record whose offset is known. These are the
        file's first record, and the records that follow those of earlier calls. Raises ShardError, which
        names a record with a damaged length, or one that the file does not contain completely.
        """
        record = start = max(known for known in list(self._known_starts) if known <= first)
        offsets, size = array("q", [self._known_starts[start]]), find_file_size(self._file)
        while record < first + count and offsets[-1] < size:
            place = offsets[-1]
            ends = self._find_record_ends(
                read_at(self._file, place, BLOCK_BYTES), first + count - record, record
            )
            if not ends or place + ends[-1] > size:
                raise make_truncation_error(f"{self._name}: record {record + max(0, len(ends) - 1)}")
            offsets.extend(place + end for end in ends)
            record += len(ends)
        self._known_starts[record] = offsets[-1]
        return offsets[first - start :]

    def _find_record_ends(self, block: bytes, limit: int, first: int) -> Sequence[int]:
        """Return the offset in a block after each of its records, for at most ``limit`` records.

        first: number of the block's first record.
        """
        if not self._native:
            return find_record_ends(block, limit, self._name, first)
        try:
            found: Sequence[int] = kernels.find_frame_ends(block, limit).tolist()
        except kernels.RecordError as error:
            raise _make_record_error(self._name, first, error) from None
        return found

    @property
    def row_file(self) -> IO[bytes]:
        return self._file

    def decode_rows(
        self, data: bytes | memoryview, sizes: Sequence[int], first: int = 0
    ) -> Iterator[ExampleBatch]:
        # The records are in memory, so they are decoded as a single block.
        return self._decode_batches(BytesIO(data), max(1, len(sizes)), first, max(1, len(data)))

    def _get_index(self) -> "tuple[array[int], Sequence[int]]":
        """Return the index of the pieces. A piece is a run of 16 records.

        The first part has the byte offset of each piece, followed by the file's size. The second part has for
        each piece the number of records up to its end.
        """
        if self.index is None:
            self.index = self._find_pieces()
        found: tuple[array[int], Sequence[int]] = self.index
        return found

    def _find_pieces(self) -> "tuple[array[int], Sequence[int]]":
        """Find the pieces by reading the header of every record.

        Return the index that ``_get_index`` describes.
        """
        # find_record_starts also yields the end of the file. After the loop ``records`` is therefore the
        # number of records, and ``place`` the file's size. For example, a file of 40 records gives the
        # offsets of the records 0, 16 and 32 and of the file's end, and the piece ends [16, 32, 40].
        starts, records, place = array("Q"), 0, 0
        for records, place in enumerate(find_record_starts(self._file, self._name)):
            if records % _PIECE_RECORDS == 0:
                starts.append(place)
        if records % _PIECE_RECORDS:
            starts.append(place)
        ends = (min(number * _PIECE_RECORDS, records) for number in range(1, len(starts)))
        return starts, array("Q", ends)

    def _decode_batches(
        self, file: ByteSource, size: int, first: int = 0, block_bytes: int = BLOCK_BYTES
    ) -> Iterator[ExampleBatch]:
        """Yield the examples from the file's current position on, in batches of at most ``size``.

        first: number of the record at this position.
        block_bytes: number of bytes that the kernel gets at a time.
        """
        if self._native and self._objective.decodes_natively(self.layout):
            yield from self._decode_with_kernel(file, size, first, block_bytes)
            return
        examples = self._decode_examples(file, first)
        while group := list(islice(examples, size)):
            yield self._objective.batch_type.of(group, wide=True)

    def _decode_examples(self, file: ByteSource, first: int) -> Iterator[Any]:
        """Yield the examples from the file's current position on, decoded in Python.

        first: number of the record at this position.
        """
        for record, payload in enumerate(read_payloads(file, self._name, first), first):
            try:
                yield self._objective.example(decode_example(payload), self.layout)
            except (NotAnExample, LossyExample) as error:
                raise ShardError(f"{self._name}: record {record}: {error}") from None

    def _decode_with_kernel(
        self, file: ByteSource, size: int, first: int, block_bytes: int
    ) -> Iterator[ExampleBatch]:
        """Yield batches of the examples from the file's current position on, decoded by the C++ kernel.

        first: number of the record at this position.
        block_bytes: number of bytes that the kernel gets at a time.
        """
        format, batch_type = self._objective.record_format(self.layout), self._objective.batch_type
        names = [column.name for column in batch_type.columns()]
        for columns in decode_columns(file, self._name, format, size, first, block_bytes):
            yield batch_type(**dict(zip(names, columns, strict=True)))


def decode_columns(
    file: ByteSource,
    name: str,
    format: Any,
    size: int,
    first: int = 0,
    block_bytes: int = BLOCK_BYTES,
) -> Iterator[list[Any]]:
    """Decode the records of a file with the C++ kernel.

    Yield the columns of at most ``size`` records at a time.

    name: the file, for errors.
    format: the kernel's record format, which defines the columns. The records are counted by its second
        column, which must have one item per record.
    first: number of the record at the file's current position.
    block_bytes: number of bytes that are read at a time.
    """
    # Blocks have a fixed size, so the last record of a block is usually cut. decode() stops before an
    # incomplete record and returns how many bytes it used. The remaining bytes go to the front of the next
    # block. If a record is longer than a block, twice as many bytes are read each time, so that the work
    # stays linear in the record's size.
    record, rest = first, b""
    while more := file.read(max(block_bytes, len(rest))):
        block, place = memoryview(rest + more), 0
        # While the caller uses the records, only the block itself stays in memory.
        del more
        while True:
            try:
                columns, used = format.decode(block[place:], size)
            except kernels.RecordError as error:
                raise _make_record_error(name, record, error) from None
            if not used:
                break
            place += used
            record += len(columns[1])
            yield columns
        rest = bytes(block[place:])
    if rest:
        raise make_truncation_error(f"{name}: record {record}")


def find_layout_of_features(features: FieldValues, objective: Objective | None = None) -> ShardLayout:
    """Return the layout of a file's examples, derived from the features of one record.

    LossyExample if the features do not match the objective.

    objective: the examples' objective. None takes the built-in objective with exactly these features.
    """
    forms = [form for one in ([objective] if objective else OBJECTIVES.values()) for form in _list_forms(one)]
    exact = [form for form in forms if set(form[1]) == set(features)]
    if not exact:
        remedy = "" if objective else "; give --objective NAME, that of its examples"
        raise LossyExample(_format_misfit(features, [set(fields) for _, fields in forms]) + remedy)
    layout, fields = exact[0]
    sizes = {field.size: len(features[name] or ()) for name, field in fields.items() if field.size}
    if not 1 <= sizes[IDS.size] <= LONGEST_SEQUENCE:
        found = f"{next(name for name, field in fields.items() if field.size == IDS.size)} has"
        raise LossyExample(f"{found} {sizes[IDS.size]} values, expected 1 to {LONGEST_SEQUENCE}")
    return ShardLayout.of_sizes(sizes, objective=layout.objective, remask=layout.remask)


def _find_padding(features: FieldValues, fields: Fields) -> int:
    """Return the id at all padded positions of a record. 0 if there are none, or if they have different
    ids.
    """
    # The number of ones in input_mask is the number of tokens. All positions after the tokens are padding.
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


def _format_misfit(features: FieldValues, forms: Sequence[set[str]]) -> str:
    """Return an error message that says why features are not those of a record.

    It names the unknown features. If there are none, it names the features that the first form has and the
    record lacks.

    forms: the feature names of each form that a record can have.
    """
    whole = max((form for form in forms if form < set(features)), key=len, default=None)
    if whole is None:
        return f"lacks {', '.join(sorted(forms[0] - set(features)))}"
    return f"holds more features than such an example has: {', '.join(sorted(set(features) - whole))}"


def _list_forms(objective: Objective) -> Iterator[tuple[ShardLayout, Fields]]:
    """Yield the two forms that the objective's records can have, in the usual order and in Graphcore's order.

    A form is a layout and its fields. The sizes in the layout are placeholders.
    """
    for remask in (False, True):
        layout = ShardLayout(objective=objective.name, max_seq_length=1, remask=remask)
        try:
            yield layout, objective.fields("tfrecord", layout)
        except SettingsError:
            continue


def read_canonical_blocks(
    file: ByteSource, name: str, engine: Engine | None = None
) -> Iterator[tuple[bytes, int]]:
    """Convert the records of a TFRecord file to canonical form.

    Yield (bytes of some records, number of these records).

    This works for any ``tf.train.Example`` messages. Raises ShardError, which names a record that is damaged
    or not an Example.
    """
    if not use_native(engine or default_engine()):
        for record, payload in enumerate(read_payloads(file, name)):
            try:
                yield frame_payload(canonicalise_example(payload)), 1
            except NotAnExample as error:
                raise ShardError(f"{name}: record {record}: not a tf.train.Example: {error}") from None
        return
    done, block = 0, b""
    while more := file.read(max(BLOCK_BYTES, len(block))):
        block += more
        try:
            canonical, used, records = kernels.canonicalize(block)
        except kernels.RecordError as error:
            raise _make_record_error(name, done, error) from None
        block = block[used:]
        done += records
        yield canonical, records
    if block:
        raise make_truncation_error(f"{name}: record {done}")


def _make_record_error(name: str, done: int, error: Exception) -> ShardError:
    record, message = error.args
    return ShardError(f"{name}: record {done + record}: {message}")


def split_frames(block: bytes) -> list[bytes]:
    """Split a block of complete, undamaged records into the bytes of each record, with its length and
    checksums.
    """
    frames, place = [], 0
    while place < len(block):
        end = place + int.from_bytes(block[place : place + 8], "little") + FRAME_BYTES
        frames.append(block[place:end])
        place = end
    return frames
