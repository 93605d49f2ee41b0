"""Layout ``flat``, our own: Parquet, one row a pack, its lists without padding.

The sequences of a row stand one after the other, each with its [CLS] at its head. ``sequence_ends`` says
where each ends in ``input_ids``, ``mask_ends`` where its masks end in ``masked_lm_positions``; positions
and first lengths count from the sequence's own start, so that a sequence can be cut out as it is. The
metadata hold the layout and its sizes.
"""

from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from bertdata.examples.bert.batch import BertBatch
from bertdata.examples.columns import Array, lengths, narrow
from bertdata.records import ShardLayout
from bertdata.shards.packed.check import check_packed_layout, check_packs, check_sizes
from bertdata.shards.packed.fields import check_names, row_fields
from bertdata.shards.packed.packs import (
    PackBatch,
    PackReader,
    PackRegrouping,
    pack_arrays,
    regroup_packs,
    rows_of,
)
from bertdata.shards.parquet_file import (
    ParquetInput,
    ParquetOutput,
    check_schema,
    find_size,
    group_rows,
    list_column,
    list_schema,
    lists,
    load_pyarrow,
)
from bertdata.shards.protocol import Sink
from bertdata.shards.rows import RecordCheck

NAME = "flat"
_FIELDS = row_fields(NAME, "parquet")
_TYPES = {name: field.type for name, field in _FIELDS.items()}
_SIZES = ("max_seq_length", "max_predictions_per_seq", "sequences_per_row")
_ZSTD_LEVEL = 1
"""Packing puts examples of one document far apart, so a higher level finds little more to repeat."""


class FlatWriter:
    """Writes rows as row groups of a fixed size, so the bytes do not depend on how they were batched."""

    def __init__(self, sink: Sink, layout: ShardLayout) -> None:
        check_packed_layout(layout)
        self._layout = layout
        self._received = 0
        self._blocks = PackRegrouping(group_rows(layout))
        self._schema = list_schema(_TYPES, set(_FIELDS))
        self._parquet = ParquetOutput(sink, self._schema, _ZSTD_LEVEL)

    def write(self, packs: PackBatch) -> None:
        packs = pack_arrays(packs)
        check_packs(packs, self._layout, RecordCheck(name="flat shard", first=self._received))
        self._received += len(packs)
        for block in self._blocks.add(packs):
            self._parquet.write(_encode(block, self._schema))

    def close(self) -> None:
        for block in self._blocks.rest():
            self._parquet.write(_encode(block, self._schema))
        sizes = {what: str(getattr(self._layout, what)) for what in _SIZES}
        found = {"packing": NAME, "objective": self._layout.objective, **sizes}
        self._parquet.close({f"bertdata.{what}": value for what, value in found.items()})


class FlatReader(PackReader):
    """Reads a file of these columns, whatever their integer types and row groups, from a seekable file."""

    layout: ShardLayout

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._name = name
        self._parquet = ParquetInput(file, name)
        check_names(self._parquet.schema.names, _FIELDS, name)
        check_schema(self._parquet.schema, _TYPES, set(_FIELDS), name)
        self.layout = _find_layout(self._parquet.metadata, name)
        self.rows = len(self._parquet)
        self._examples: int | None = None

    def __len__(self) -> int:
        """Number of examples. Reads the column of their labels."""
        if self._examples is None:
            found = self._parquet.records(["next_sentence_labels"], group_rows(self.layout))
            self._examples = sum(len(records.column(0).flatten()) for _, records in found)
        return self._examples

    def packs(self, size: int) -> Iterator[PackBatch]:
        return regroup_packs(self._blocks(), size)

    def _blocks(self) -> Iterator[PackBatch]:
        for start, records in self._parquet.records(list(_FIELDS), group_rows(self.layout)):
            record = RecordCheck(name=self._name, first=start)
            packs = _decode(records, record)
            check_packs(packs, self.layout, record)
            yield PackBatch(examples=narrow(packs.examples), ends=packs.ends.astype(np.uint32))


def _encode(block: PackBatch, schema: Any) -> Any:
    """The Arrow table of checked rows."""
    examples: Any = block.examples
    sequence_ends = block.ends.astype(np.int64)
    values = {column.name: getattr(examples, column.name) for column in examples.columns()}
    values["ends"], id_ends = _cut_ends(examples.ends, sequence_ends)
    values["mask_ends"], mask_ends = _cut_ends(examples.mask_ends, sequence_ends)
    row_ends = {"ids": id_ends, "positions": mask_ends, "labels": mask_ends}
    columns = [
        lists(values[field.of], row_ends.get(field.of, sequence_ends), schema.field(name).type)
        for name, field in _FIELDS.items()
    ]
    return load_pyarrow().table(columns, schema)


def _cut_ends(ends: Array, sequence_ends: Array) -> tuple[Array, Array]:
    """Sequences' ends that count from the batch's start as counted from their row's, and the rows' ends."""
    row_ends: Array = ends[sequence_ends - 1].astype(np.int64)
    return ends - (row_ends - lengths(row_ends))[rows_of(sequence_ends)], row_ends


def _decode(records: Any, record: RecordCheck) -> PackBatch:
    """The rows of an Arrow record batch, their columns in its item types and not yet checked.

    ShardError where lists of a row contradict one another.
    """
    values: dict[str, Any] = {}
    ends: dict[str, Any] = {}
    for name, field in _FIELDS.items():
        values[field.of], ends[field.of] = list_column(records, name, record)
    for of in ("first_lengths", "mask_ends", "next_labels"):
        _check_equal(of, ends[of], ends["ends"], record)
    _check_equal("labels", ends["labels"], ends["positions"], record)
    sequence_ends = ends["ends"]
    values["ends"] = _joined_ends("ends", values["ends"], sequence_ends, ends["ids"], record)
    values["mask_ends"] = _joined_ends(
        "mask_ends", values["mask_ends"], sequence_ends, ends["positions"], record
    )
    return PackBatch(examples=BertBatch(**values), ends=sequence_ends)


def _check_equal(of: str, found: Array, expected: Array, record: RecordCheck) -> None:
    [name] = [name for name, field in _FIELDS.items() if field.of == of]
    count, due = lengths(found), lengths(expected)
    record.refuse(count != due, lambda i: f"{count[i]} values of {name}, expected {due[i]}")


def _joined_ends(of: str, found: Array, sequence_ends: Array, row_ends: Array, record: RecordCheck) -> Array:
    """Ends that count from each row's start as ends that count from the batch's. They must fill the row."""
    [name] = [name for name, field in _FIELDS.items() if field.of == of]
    found = found.astype(np.int64)
    rows, sizes, counts = rows_of(sequence_ends), lengths(row_ends), lengths(sequence_ends)
    before = np.concatenate([[0], found])[:-1]
    before[(sequence_ends - counts)[counts > 0]] = 0  # a row's first sequence follows none
    record.refuse_items(
        found < before,
        sequence_ends,
        lambda item: f"{name} holds {found[item]} after {before[item]}, expected ascending ends",
    )
    last = np.concatenate([[0], found])[np.where(counts > 0, sequence_ends, 0)]
    record.refuse(last != sizes, lambda i: f"{name} ends at {last[i]}, expected {sizes[i]}")
    joined: Array = found + (row_ends - sizes)[rows]
    return joined


def _find_layout(metadata: dict[bytes, bytes], name: str) -> ShardLayout:
    sizes = {what: find_size(metadata, what, name) for what in _SIZES}
    layout = ShardLayout(packing=NAME, **sizes)
    check_sizes(layout, name)
    return layout
