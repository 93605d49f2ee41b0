"""HDF5 shards of packed rows with fixed widths. There is one gzip-compressed dataset per field."""

from collections.abc import Iterator
from typing import IO

import numpy as np

from bertdata.errors import ShardError
from bertdata.examples.objective import Objective
from bertdata.records import ShardLayout
from bertdata.shards.hdf5_datasets import (
    DatasetSpec,
    Hdf5Input,
    Hdf5Output,
    choose_block_rows,
    read_dataset_types,
)
from bertdata.shards.packed.check import check_packed_layout
from bertdata.shards.packed.fields import check_row_fields, load_row_fields
from bertdata.shards.packed.grid import GridLayout, check_grid_rows, find_grid_layout, read_grids
from bertdata.shards.packed.packs import (
    PackBatch,
    PackReader,
    PackRegrouper,
    convert_packs_to_arrays,
    regroup_packs,
)
from bertdata.shards.protocol import Sink
from bertdata.shards.rows import RecordCheck

_GZIP_LEVEL = 2
"""The level of gzip's compression. Level 2 is a third faster than the usual level 4, and files are a tenth
larger.

Compression takes most of the time of packing. HDF5's shuffle filter, which is also used, saves a quarter of
this time and of the bytes.
"""


class GridHdf5Writer:
    """Writer of packed rows to HDF5, in blocks with a fixed number of rows.

    The file's bytes do not depend on how the rows are divided among calls of ``write``.
    """

    def __init__(self, sink: Sink, layout: ShardLayout, arrangement: GridLayout) -> None:
        check_packed_layout(layout)
        self._layout = layout
        self._arrangement = arrangement
        self._received = 0
        self._fields = load_row_fields(arrangement.name, "hdf5")
        self._widths = {field.of: field.width(layout) or 0 for field in self._fields.values()}
        self._types = {field.of: np.dtype(field.type) for field in self._fields.values()}
        step = choose_block_rows(layout.max_seq_length)
        self._blocks = PackRegrouper(step)
        forms = {
            name: DatasetSpec(type=field.type, row=(self._widths[field.of],))
            for name, field in self._fields.items()
        }
        self._file = Hdf5Output(sink, forms, step, _GZIP_LEVEL, objective=layout.objective, shuffle=True)

    def write(self, packs: PackBatch) -> None:
        packs = convert_packs_to_arrays(packs)
        record = RecordCheck(name=f"{self._arrangement.name} shard", first=self._received)
        check_grid_rows(packs, self._layout, record)
        self._received += len(packs)
        for block in self._blocks.add(packs):
            self._write_block(block)

    def _write_block(self, block: PackBatch) -> None:
        grids = self._arrangement.arrange_rows(block, self._widths, self._types)
        self._file.append({name: grids[field.of] for name, field in self._fields.items()})

    def close(self) -> None:
        for block in self._blocks.rest():
            self._write_block(block)
        self._file.close()


class GridHdf5Reader(PackReader):
    """Reader of packed rows from HDF5 files that any program may have written, with any integer types.

    The file must be seekable.
    """

    layout: ShardLayout

    def __init__(self, file: IO[bytes], name: str, arrangement: GridLayout, objective: Objective) -> None:
        self._name = name
        self._arrangement = arrangement
        self._fields = load_row_fields(arrangement.name, "hdf5")
        check_row_fields(read_dataset_types(file), self._fields, name)
        self._file = Hdf5Input(file, name, list(self._fields))
        self.layout = self._find_layout(objective)
        self._file.check_storage()
        self._file.drop_caches(choose_block_rows(self.layout.max_seq_length))
        self._examples: int | None = None

    def _find_layout(self, objective: Objective) -> ShardLayout:
        shapes = self._file.shapes
        for name, field in self._fields.items():
            if self._file.kinds[name].kind not in "iu":
                raise ShardError(
                    f"{self._name}: {name} is {self._file.kinds[name]}, expected integers ({field.type})"
                )
            if len(shapes[name]) != 2:
                raise ShardError(f"{self._name}: {name} has shape {shapes[name]}, expected two dimensions")
        widths = {field.of: shapes[name][1] for name, field in self._fields.items()}
        layout = find_grid_layout(self._arrangement, widths, objective, self._name)
        self.rows = next(iter(shapes.values()))[0]
        self._file.check_shapes(
            {name: (self.rows, field.width(layout) or 0) for name, field in self._fields.items()}
        )
        return layout

    def __len__(self) -> int:
        """Return the number of examples. All rows are read for this."""
        if self._examples is None:
            self._examples = sum(len(packs.examples) for packs in self._read_blocks())
        return self._examples

    def packs(self, size: int) -> Iterator[PackBatch]:
        return regroup_packs(self._read_blocks(), size)

    def _read_blocks(self) -> Iterator[PackBatch]:
        step = choose_block_rows(self.layout.max_seq_length)
        for start in range(0, self.rows, step):
            yield self._read_block(start, min(start + step, self.rows))

    def _read_block(self, start: int, stop: int) -> PackBatch:
        """Return the packed rows ``start`` to ``stop - 1``."""
        record = RecordCheck(name=self._name, first=start)
        found = self._file.read(start, stop)
        grids = {field.of: found[name] for name, field in self._fields.items()}
        return read_grids(grids, self.layout, self._arrangement, self._fields, record)
