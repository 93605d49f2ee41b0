"""TFRecord shards of packed rows with fixed widths. A record holds a row."""

from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from bertdata._native import Engine
from bertdata.errors import ShardError
from bertdata.examples.columns import Array
from bertdata.examples.fields import VALUE_LIMIT
from bertdata.examples.groups import get_masks
from bertdata.examples.objective import Objective
from bertdata.records import ShardLayout
from bertdata.shards.example_proto import Features, NotAnExample, decode_example
from bertdata.shards.framing import count_records, read_payloads
from bertdata.shards.packed.check import check_largest_id, check_packed_layout
from bertdata.shards.packed.fields import check_row_fields, load_row_fields
from bertdata.shards.packed.grid import GridLayout, check_grid_rows, find_grid_layout, read_grids
from bertdata.shards.packed.packs import (
    PackBatch,
    PackReader,
    convert_packs_to_arrays,
    regroup_packs,
    slice_packs,
)
from bertdata.shards.packed.row_records import decode_rows, encode_rows
from bertdata.shards.protocol import Sink
from bertdata.shards.rows import RecordCheck

_BLOCK_ROWS = 256


class GridRecordWriter:
    """Writer of packed rows to TFRecord. Each row is a record in canonical form."""

    def __init__(
        self, sink: Sink, layout: ShardLayout, arrangement: GridLayout, engine: Engine | None = None
    ) -> None:
        check_packed_layout(layout)
        self._sink = sink
        self._layout = layout
        self._arrangement = arrangement
        self._engine = engine
        self._received = 0
        fields = load_row_fields(arrangement.name, "tfrecord")
        self._widths = {field.of: field.width(layout) or 0 for field in fields.values()}

    def write(self, packs: PackBatch) -> None:
        packs = convert_packs_to_arrays(packs)
        record = RecordCheck(name=f"{self._arrangement.name} shard", first=self._received)
        check_grid_rows(packs, self._layout, record)
        examples: Any = packs.examples
        check_largest_id(packs, VALUE_LIMIT - 1, record)
        highest = max(_find_max_id(examples.ids), _find_max_id(get_masks(examples).originals))
        types = dict.fromkeys(self._widths, np.uint16 if highest < 1 << 16 else np.uint32)
        for start in range(0, len(packs), _BLOCK_ROWS):
            block = slice_packs(packs, start, min(start + _BLOCK_ROWS, len(packs)))
            grids = self._arrangement.arrange_rows(block, self._widths, types)
            self._sink.write(encode_rows(grids, self._layout, self._engine))
        self._received += len(packs)

    def close(self) -> None:
        """Do nothing, because a TFRecord file has no footer."""


class GridRecordReader(PackReader):
    """Reader of packed rows from TFRecord files that any program may have written.

    The first record determines the layout. The file must be seekable.
    """

    layout: ShardLayout

    def __init__(
        self,
        file: IO[bytes],
        name: str,
        arrangement: GridLayout,
        objective: Objective,
        engine: Engine | None = None,
    ) -> None:
        self._file = file
        self._name = name
        self._arrangement = arrangement
        self._engine = engine
        self._fields = load_row_fields(arrangement.name, "tfrecord")
        file.seek(0)
        first = next(read_payloads(file, name), None)
        if first is None:
            raise ShardError(f"{name}: holds no records")
        try:
            self.layout = self._find_layout(decode_example(first), objective)
        except NotAnExample as error:
            raise ShardError(f"{name}: record 0: {error}") from None
        self._examples: int | None = None
        self._rows: int | None = None

    def _find_layout(self, features: Features, objective: Objective) -> ShardLayout:
        check_row_fields(features, self._fields, f"{self._name}: record 0")
        widths = {field.of: len(features[name] or ()) for name, field in self._fields.items()}
        layout = find_grid_layout(self._arrangement, widths, objective, f"{self._name}: record 0")
        for name, field in self._fields.items():
            if widths[field.of] != field.width(layout):
                found = f"{name} has {widths[field.of]} values"
                raise NotAnExample(f"{found}, expected {field.width(layout)}")
        return layout

    @property
    def rows(self) -> int:  # type: ignore[override]
        """The number of packed rows. These are the file's records, which are counted by their headers."""
        if self._rows is None:
            self._rows = count_records(self._file, self._name)
        return self._rows

    def __len__(self) -> int:
        """Return the number of examples. All rows are read for this."""
        if self._examples is None:
            before = self._file.tell()
            self._examples = sum(len(packs.examples) for packs in self._read_blocks(_BLOCK_ROWS))
            self._file.seek(before)
        return self._examples

    def packs(self, size: int) -> Iterator[PackBatch]:
        return regroup_packs(self._read_blocks(min(size, _BLOCK_ROWS)), size)

    def _read_blocks(self, size: int) -> Iterator[PackBatch]:
        first = 0
        for grids in decode_rows(self._file, self._name, self.layout, size, self._engine):
            record = RecordCheck(name=self._name, first=first)
            packs = read_grids(grids, self.layout, self._arrangement, self._fields, record)
            first += len(packs)
            yield packs


def _find_max_id(ids: Array) -> int:
    return int(ids.max()) if len(ids) else 0
