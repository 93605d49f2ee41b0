"""HDF5 shards as NVIDIA's and Habana's trainers read them: a gzip-compressed dataset a field, no weights.

The first masked position 0 ends a row's masks, so position 0 itself cannot be masked.
"""

from collections.abc import Iterator
from typing import IO

from bertdata.errors import ShardError
from bertdata.examples.bert.objective import BERT
from bertdata.examples.fields import Fields
from bertdata.examples.objective import Objective
from bertdata.examples.objectives import OBJECTIVES, find_objective
from bertdata.records import ExampleBatch, ShardLayout
from bertdata.shards.hdf5_datasets import (
    DatasetForm,
    Hdf5Input,
    Hdf5Output,
    block_rows,
    dataset_names,
)
from bertdata.shards.hdf5_file import load_h5py
from bertdata.shards.protocol import ShardReader, Sink


class Hdf5Writer:
    """Writes batches as blocks of examples. The bytes do not depend on how the examples were batched."""

    def __init__(self, sink: Sink, layout: ShardLayout) -> None:
        load_h5py()
        from bertdata.examples.columns import Regrouping
        from bertdata.shards import rows

        rows.check_writable(layout, "hdf5")
        self._layout = layout
        self._received = 0
        step = block_rows(layout.max_seq_length)
        self._blocks: Regrouping[ExampleBatch] = Regrouping(step)
        self._fields = find_objective(layout.objective).fields("hdf5", layout)
        self._lowest_position = _lowest_position(self._fields)
        forms = {
            name: DatasetForm(type=field.type, row=_row_shape(field.shape, layout))
            for name, field in self._fields.items()
        }
        self._file = Hdf5Output(sink, forms, step)

    def write(self, batch: ExampleBatch) -> None:
        from bertdata.examples.columns import arrays
        from bertdata.shards import rows

        batch = arrays(batch)
        record = rows.RecordCheck(name="hdf5 shard", first=self._received)
        rows.check_batch(batch, self._layout, record, self._lowest_position)
        self._received += len(batch)
        for block in self._blocks.add(batch):
            self._file.append(rows.pad(block, self._layout, self._fields))

    def close(self) -> None:
        from bertdata.shards import rows

        for block in self._blocks.rest():
            self._file.append(rows.pad(block, self._layout, self._fields))
        self._file.close()


class Hdf5Reader(ShardReader):
    """Reads any tool's file of this layout, whatever its integer types and chunks, from a seekable file.

    objective: that of the examples, where it is known; else the one of ours with the most fields that are all
    there, BERT's where there is none.
    """

    layout: ShardLayout

    def __init__(self, file: IO[bytes], name: str, objective: Objective | None = None) -> None:
        self._name = name
        objective = objective or _find_objective(file)
        self._objective = objective
        self._fields = objective.fields("hdf5")
        self._file = Hdf5Input(file, name, list(self._fields))
        self._rows, self.layout = _find_layout(self._file, objective, name)
        self._file.check_storage()

    def __len__(self) -> int:
        return self._rows

    def batches(self, size: int) -> Iterator[ExampleBatch]:
        from bertdata.examples.columns import regroup

        return regroup(self._blocks(), size)

    def _blocks(self) -> Iterator[ExampleBatch]:
        from bertdata.examples.columns import narrow
        from bertdata.shards.rows import RecordCheck, check_batch, unpad

        step, lowest_position = block_rows(self.layout.max_seq_length), _lowest_position(self._fields)
        for start in range(0, len(self), step):
            record = RecordCheck(name=self._name, first=start)
            found = self._file.read(start, min(start + step, len(self)))
            block = unpad(found, self._fields, self._objective.batch_type, record)
            check_batch(block, self.layout, record, lowest_position)
            yield narrow(block)


def _find_objective(file: IO[bytes]) -> Objective:
    names = dataset_names(file)
    fitting = [one for one in OBJECTIVES.values() if names >= set(one.fields("hdf5"))]
    return max(fitting, key=lambda one: len(one.fields("hdf5")), default=BERT)


def _lowest_position(fields: Fields) -> int:
    """1 where a position 0 would end the masks."""
    return int(any(field.ends_at_padding for field in fields.values()))


def _row_shape(declared: str, layout: ShardLayout) -> tuple[int, ...]:
    shapes = {"S": (layout.max_seq_length,), "P": (layout.max_predictions_per_seq,), "1": ()}
    return shapes[declared]


def _find_layout(file: Hdf5Input, objective: Objective, name: str) -> tuple[int, ShardLayout]:
    """Number of rows and their layout. ShardError if a dataset's type or shape does not fit the others."""
    from bertdata.shards.rows import check_layout

    fields, shapes = objective.fields("hdf5"), file.shapes
    for field, kind in file.kinds.items():
        if kind.kind not in "iu":
            raise ShardError(f"{name}: {field} is {kind}, expected integers ({fields[field].type})")
    widest: dict[str, str] = {}
    for field, declared in fields.items():
        widest.setdefault(declared.shape, field)
    for shape in ("S", "P"):
        if shape in widest and len(shapes[widest[shape]]) != 2:
            found = shapes[widest[shape]]
            raise ShardError(f"{name}: {widest[shape]} has shape {found}, expected two dimensions")
    rows, width = shapes[widest["S"]]
    masks = shapes[widest["P"]][1] if "P" in widest else 0
    layout = ShardLayout(objective=objective.name, max_seq_length=width, max_predictions_per_seq=masks)
    check_layout(layout, name, has_masks="P" in widest)
    file.check_shapes({name: (rows, *_row_shape(field.shape, layout)) for name, field in fields.items()})
    return rows, layout
