"""Write files for Hugging Face's ``datasets``: Arrow IPC streams with one row per example, without padding.

The schema's metadata stores the objective and its sizes. This module imports NumPy.
"""

from importlib import import_module
from typing import Any

import numpy as np

from bertdata.examples.columns import Array, BatchRegrouper, compute_lengths, convert_to_arrays
from bertdata.examples.fields import Field, map_columns_by_name
from bertdata.examples.groups import find_mask_columns
from bertdata.examples.objectives import find_objective
from bertdata.records import IDS_ENDS, Column, ExampleBatch, ShardLayout
from bertdata.shards.arrow_fields import FEATURES, OBJECTIVE, dump_features, list_arrow_fields
from bertdata.shards.parquet_file import SinkFile, load_pyarrow
from bertdata.shards.protocol import Sink
from bertdata.shards.rows import RecordCheck, check_batch, check_writable

ROWS = 1000
"""Number of rows in an Arrow record batch. ``datasets`` uses the same number."""


class ArrowWriter:
    """Writer of an Arrow stream, in record batches of ROWS rows.

    The file's bytes do not depend on how the examples are divided among calls of ``write``.

    has_masks: False leaves out the columns of masks, so that only the original text is stored.
    """

    def __init__(self, sink: Sink, layout: ShardLayout, *, has_masks: bool = True) -> None:
        pyarrow = load_pyarrow()
        check_writable(layout, "arrow")
        objective = find_objective(layout.objective)
        self._fields = list_arrow_fields(objective, has_masks=has_masks)
        self._columns = map_columns_by_name(objective.batch_type)
        self._layout, self._received = layout, 0
        self._blocks: BatchRegrouper[ExampleBatch] = BatchRegrouper(ROWS)
        metadata = {FEATURES: dump_features(self._fields), OBJECTIVE: layout.objective}
        sizes = {f"bertdata.{what}": str(layout.size(what)) for what in objective.batch_type.sizes()}
        if layout.padding_id:
            sizes["bertdata.padding_id"] = str(layout.padding_id)
        types = {name: _find_arrow_type(field) for name, field in self._fields.items()}
        self._schema = pyarrow.schema(types, metadata=metadata | sizes)
        self._stream = import_module("pyarrow.ipc").new_stream(SinkFile(sink), self._schema)

    def write(self, batch: ExampleBatch) -> None:
        batch = convert_to_arrays(batch)
        check_batch(batch, self._layout, RecordCheck(name="arrow shard", first=self._received))
        self._received += len(batch)
        for block in self._blocks.add(batch):
            self._write_block(block)

    def close(self) -> None:
        for block in self._blocks.rest():
            self._write_block(block)
        self._stream.close()

    def _write_block(self, block: ExampleBatch) -> None:
        values = [_encode_field(block, field, self._columns[field.of]) for field in self._fields.values()]
        self._stream.write_batch(load_pyarrow().record_batch(values, schema=self._schema))


def _find_arrow_type(field: Field) -> Any:
    pyarrow = load_pyarrow()
    kind = pyarrow.type_for_alias(field.type)
    return kind if field.shape == "1" else pyarrow.list_(kind)


def _encode_field(block: ExampleBatch, field: Field, column: Column) -> Any:
    """Return the values of a field, for a block of checked examples, as an Arrow array.

    column: the column of the block that the field is made from.
    """
    pyarrow = load_pyarrow()
    values = np.asarray(getattr(block, column.name))
    kind = np.dtype(field.type)
    if field.shape == "1":
        return pyarrow.array(values.astype(kind))
    own = field.source in ("values", "ones") and column.ends is not None
    ends = np.asarray(getattr(block, str(column.ends) if own else IDS_ENDS)).astype(np.int64)
    items = _make_items(block, field, values, ends, kind)
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    return pyarrow.ListArray.from_arrays(pyarrow.array(offsets), pyarrow.array(items))


def _make_items(block: ExampleBatch, field: Field, values: Array, ends: Array, kind: np.dtype[Any]) -> Array:
    """Return the items of a field's lists, one list after another.

    field: its ``source`` says how the items are made from the column, for example as the items themselves or
        as a 1 for each item.
    values: the column's items.
    ends: for each example, the index after the last item of its list.
    kind: item type of the result.
    """
    total = int(ends[-1]) if len(ends) else 0
    if field.source == "values":
        return values.astype(kind)
    if field.source == "ones":
        return np.ones(total, kind)
    sizes = compute_lengths(ends)
    starts = ends - sizes
    if field.source == "after":
        after: Array = np.arange(total) - np.repeat(starts, sizes) >= np.repeat(
            values.astype(np.int64), sizes
        )
        return after.astype(kind)
    assert field.source == "placed", field.source
    masks = find_mask_columns(type(block))
    counts = compute_lengths(getattr(block, masks.ends.name))
    found = np.full(total, field.padding, kind)
    found[np.repeat(starts, counts) + getattr(block, masks.places.name)] = values
    return found
