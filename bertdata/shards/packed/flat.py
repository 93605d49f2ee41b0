"""The layout ``flat``, which is bertdata's own layout of packed rows in Parquet. It can hold any objective's
examples.

Each row of the table is a packed row, and its lists have no padding. A list holds the items of all sequences
(examples), one sequence after the other. The list ``sequence_ends`` says where the ids of each sequence end,
counted from the row's start. Other lists of ends do the same for other groups of items, such as masks.
Positions count from the start of their sequence, so a sequence can be cut out unchanged. The file's metadata
store the layout's name, the objective and the sizes of the examples.
"""

from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from bertdata.examples.columns import Array, compute_lengths, convert_to_item_types
from bertdata.examples.fields import Fields
from bertdata.examples.objective import Objective
from bertdata.examples.objectives import find_objective, find_objective_of_file
from bertdata.records import IDS_ENDS, ExampleBatch, ShardLayout
from bertdata.shards.packed.check import check_packed_layout, check_packs, check_row_sizes
from bertdata.shards.packed.fields import check_row_fields
from bertdata.shards.packed.packs import (
    PackBatch,
    PackReader,
    PackRegrouper,
    convert_packs_to_arrays,
    find_rows,
    regroup_packs,
)
from bertdata.shards.parquet_file import (
    ParquetInput,
    ParquetOutput,
    check_parquet_columns,
    choose_group_rows,
    find_objective_in_metadata,
    load_pyarrow,
    make_list_schema,
    make_lists,
    read_lists,
    read_size,
)
from bertdata.shards.protocol import Sink
from bertdata.shards.rows import RecordCheck

NAME = "flat"
_SEQUENCES = "sequences_per_row"
_ZSTD_LEVEL = 1
"""The level of zstd's compression. A higher level gains little.

Packing puts examples of a document into rows far apart, so that zstd does not find text they share.
"""


class FlatWriter:
    """Writer of packed rows to Parquet, in row groups of a fixed size.

    The file's bytes do not depend on how the rows are divided among calls of ``write``.
    """

    def __init__(self, sink: Sink, layout: ShardLayout) -> None:
        check_packed_layout(layout)
        self._layout = layout
        self._received = 0
        self._blocks = PackRegrouper(choose_group_rows(layout))
        objective = find_objective(layout.objective)
        self._fields, self._sizes = objective.flat_fields, (*objective.batch_type.sizes(), _SEQUENCES)
        self._schema = make_list_schema(_find_item_types(self._fields), set(self._fields))
        self._parquet = ParquetOutput(sink, self._schema, _ZSTD_LEVEL)

    def write(self, packs: PackBatch) -> None:
        packs = convert_packs_to_arrays(packs)
        check_packs(packs, self._layout, RecordCheck(name="flat shard", first=self._received))
        self._received += len(packs)
        for block in self._blocks.add(packs):
            self._parquet.write(_encode_rows(block, self._fields, self._schema))

    def close(self) -> None:
        for block in self._blocks.rest():
            self._parquet.write(_encode_rows(block, self._fields, self._schema))
        sizes = {what: str(self._layout.size(what)) for what in self._sizes}
        found = {"packing": NAME, "objective": self._layout.objective, **sizes}
        self._parquet.close({f"bertdata.{what}": value for what, value in found.items()})


class FlatReader(PackReader):
    """Reader of packed rows from Parquet files in the layout flat, with any integer types and sizes of row
    groups.

    The file must be seekable.
    """

    layout: ShardLayout

    def __init__(self, file: IO[bytes], name: str, objective: Objective | None = None) -> None:
        """Open the file and find the layout of its rows.

        objective: the examples' objective. None takes the objective that the file names.
        """
        self._name = name
        self._parquet = ParquetInput(file, name)
        objective = objective or find_objective_of_file(
            find_objective_in_metadata(self._parquet.metadata), name
        )
        self._batch_type, self._fields = objective.batch_type, objective.flat_fields
        check_row_fields(self._parquet.schema.names, self._fields, name)
        check_parquet_columns(self._parquet.schema, _find_item_types(self._fields), set(self._fields), name)
        self.layout = _find_layout(self._parquet.metadata, objective, name)
        self.rows = len(self._parquet)
        self._examples: int | None = None

    def __len__(self) -> int:
        """Return the number of examples. The whole column ``sequence_ends`` is read for this."""
        if self._examples is None:
            column = _find_name(IDS_ENDS, self._fields)
            found = self._parquet.read_batches([column], choose_group_rows(self.layout))
            self._examples = sum(len(records.column(0).flatten()) for _, records in found)
        return self._examples

    def packs(self, size: int) -> Iterator[PackBatch]:
        return regroup_packs(self._read_blocks(min(size, choose_group_rows(self.layout))), size)

    def _read_blocks(self, size: int) -> Iterator[PackBatch]:
        for start, records in self._parquet.read_batches(list(self._fields), size):
            record = RecordCheck(name=self._name, first=start)
            packs = _decode_rows(records, self._fields, self._batch_type, record)
            check_packs(packs, self.layout, record)
            yield PackBatch(examples=convert_to_item_types(packs.examples), ends=packs.ends.astype(np.uint32))


def _find_item_types(fields: Fields) -> dict[str, str]:
    """Return the item type of each field's list, by field name."""
    return {name: field.type for name, field in fields.items()}


def _find_name(column: str, fields: Fields) -> str:
    """Return the name of the field in which this column of the examples is stored."""
    return next(name for name, field in fields.items() if field.of == column)


def _encode_rows(block: PackBatch, fields: Fields, schema: Any) -> Any:
    """Convert a block of checked rows to an Arrow table."""
    examples, sequence_ends = block.examples, block.ends.astype(np.int64)
    values = {column.name: getattr(examples, column.name) for column in examples.columns()}
    row_ends: dict[str, Array] = {}
    for ends, items in examples.ragged().items():
        values[ends], found = _rebase_ends_to_rows(values[ends], sequence_ends)
        row_ends |= {column.name: found for column in items}
    columns = [
        make_lists(values[field.of], row_ends.get(field.of, sequence_ends), schema.field(name).type)
        for name, field in fields.items()
    ]
    return load_pyarrow().table(columns, schema)


def _rebase_ends_to_rows(ends: Array, sequence_ends: Array) -> tuple[Array, Array]:
    """Convert ends that count from the batch's start to ends that count from the start of their row.

    Also returns for each row how many items the batch has up to its end. For example, ends [3, 7, 12] in rows
    of 2 and 1 sequences give [3, 7, 5] and [7, 12].

    sequence_ends: for each row, the number of sequences in the batch up to its end.
    """
    row_ends: Array = ends[sequence_ends - 1].astype(np.int64)
    return ends - (row_ends - compute_lengths(row_ends))[find_rows(sequence_ends)], row_ends


def _decode_rows(
    records: Any, fields: Fields, batch_type: type[ExampleBatch], record: RecordCheck
) -> PackBatch:
    """Convert an Arrow record batch to packed rows, with its integer types. The values are not checked yet.

    Raises ShardError if the lists of a row contradict each other.
    """
    values: dict[str, Any] = {}
    ends: dict[str, Any] = {}
    for name, field in fields.items():
        values[field.of], ends[field.of] = read_lists(records, name, record)
    sequence_ends, ragged = ends[IDS_ENDS], batch_type.ragged()
    for column in batch_type.columns():
        items = None if column.ends is None else ragged[column.ends][0].name
        _check_equal(_find_name(column.name, fields), ends[column.name], ends[items or IDS_ENDS], record)
    for of, columns in ragged.items():
        row_ends = ends[columns[0].name]
        values[of] = _rebase_ends_to_batch(
            _find_name(of, fields), values[of], sequence_ends, row_ends, record
        )
    return PackBatch(examples=batch_type(**values), ends=sequence_ends)


def _check_equal(name: str, found: Array, expected: Array, record: RecordCheck) -> None:
    count, due = compute_lengths(found), compute_lengths(expected)
    record.refuse(count != due, lambda i: f"{count[i]} values of {name}, expected {due[i]}")


def _rebase_ends_to_batch(
    name: str, found: Array, sequence_ends: Array, row_ends: Array, record: RecordCheck
) -> Array:
    """Convert ends that count from the start of their row to ends that count from the batch's start.

    This reverses ``_rebase_ends_to_rows``. Raises ShardError unless the last end of each row is the row's
    number of items.

    name: name of the field, for errors.
    found: the ends that count from the start of their row.
    sequence_ends: for each row, the number of sequences in the batch up to its end.
    row_ends: for each row, the number of items in the batch up to its end.
    """
    found = found.astype(np.int64)
    rows, sizes, counts = find_rows(sequence_ends), compute_lengths(row_ends), compute_lengths(sequence_ends)
    before = np.concatenate([[0], found])[:-1]
    before[(sequence_ends - counts)[counts > 0]] = 0  # the first sequence of a row begins at 0
    record.refuse_items(
        found < before,
        sequence_ends,
        lambda item: f"{name} holds {found[item]} after {before[item]}, expected ascending ends",
    )
    last = np.concatenate([[0], found])[np.where(counts > 0, sequence_ends, 0)]
    record.refuse(last != sizes, lambda i: f"{name} ends at {last[i]}, expected {sizes[i]}")
    joined: Array = found + (row_ends - sizes)[rows]
    return joined


def _find_layout(metadata: dict[bytes, bytes], objective: Objective, name: str) -> ShardLayout:
    names = (*objective.batch_type.sizes(), _SEQUENCES)
    sizes = {what: read_size(metadata, what, name) for what in names}
    layout = ShardLayout.of_sizes(sizes, packing=NAME, objective=objective.name)
    check_row_sizes(layout, name)
    return layout
