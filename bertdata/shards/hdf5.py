"""HDF5 shards as NVIDIA's and Habana's trainers read them, with one gzip-compressed dataset per field.

In each row the masks end at the first masked position 0, so position 0 itself cannot be masked.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import IO

from bertdata.errors import ShardError
from bertdata.examples.fields import Field, Fields
from bertdata.examples.objective import Objective
from bertdata.examples.objectives import OBJECTIVES, find_objective, find_objective_of_file
from bertdata.io.terminal import escape_unprintable
from bertdata.records import DEFAULT_OBJECTIVE, IDS, ExampleBatch, ShardLayout
from bertdata.shards.hdf5_datasets import (
    DatasetSpec,
    Hdf5Input,
    Hdf5Output,
    choose_block_rows,
    read_dataset_names,
    read_objective,
    read_padding_id,
)
from bertdata.shards.hdf5_file import load_h5py
from bertdata.shards.protocol import ShardReader, Sink


class Hdf5Writer:
    """Writer of examples to HDF5, in blocks with a fixed number of rows.

    The file's bytes do not depend on how the examples are divided among calls of ``write``.
    """

    def __init__(self, sink: Sink, layout: ShardLayout, name: str = "hdf5 shard") -> None:
        load_h5py()
        from bertdata.examples.columns import BatchRegrouper
        from bertdata.shards import rows

        rows.check_writable(layout, "hdf5")
        self._layout, self._name = layout, name
        self._received = 0
        step = choose_block_rows(layout.max_seq_length)
        self._blocks: BatchRegrouper[ExampleBatch] = BatchRegrouper(step)
        self._fields = find_objective(layout.objective).fields("hdf5", layout)
        self._lowest = _find_lowest_items(self._fields)
        forms = {
            name: DatasetSpec(type=field.type, row=_find_row_shape(field, layout))
            for name, field in self._fields.items()
        }
        self._file = Hdf5Output(sink, forms, step, objective=layout.objective, padding_id=layout.padding_id)

    def write(self, batch: ExampleBatch) -> None:
        from bertdata.examples.columns import convert_to_arrays
        from bertdata.shards import rows

        batch = convert_to_arrays(batch)
        record = rows.RecordCheck(name=self._name, first=self._received)
        rows.check_batch(batch, self._layout, record, self._lowest)
        self._received += len(batch)
        for block in self._blocks.add(batch):
            self._file.append(rows.pad_examples(block, self._layout, self._fields))

    def close(self) -> None:
        from bertdata.shards import rows

        for block in self._blocks.rest():
            self._file.append(rows.pad_examples(block, self._layout, self._fields))
        self._file.close()


class Hdf5Reader(ShardReader):
    """Reader of HDF5 files with the fields of an objective.

    Any program may have written them, with any integer types.

    file: the file, which must be seekable.
    objective: the examples' objective. None takes the objective that the file names. If the file names none,
        it takes the built-in objective with exactly the file's fields.
    """

    layout: ShardLayout

    def __init__(self, file: IO[bytes], name: str, objective: Objective | None = None) -> None:
        self._name = name
        found = read_dataset_names(file)
        objective = objective or _find_objective(file, found, name)
        _refuse_unknown_fields(found, objective, name)
        self._objective = objective
        self._file = Hdf5Input(file, name, list(objective.fields("hdf5")))
        self._rows, layout = _find_layout(self._file, objective, name)
        self.layout = replace(layout, padding_id=read_padding_id(file))
        self._fields = objective.fields("hdf5", self.layout)
        self._file.check_storage()
        self._file.drop_caches(choose_block_rows(self.layout.max_seq_length))

    def __len__(self) -> int:
        return self._rows

    def batches(self, size: int) -> Iterator[ExampleBatch]:
        from bertdata.examples.columns import regroup_batches

        return regroup_batches(map(self.read_piece, range(len(self.find_piece_ends()))), size)

    def find_piece_ends(self) -> Sequence[int]:
        """Return for each piece the number of examples up to its end.

        A piece has as many rows as a chunk in bertdata's files.
        """
        step = choose_block_rows(self.layout.max_seq_length)
        return [min(start + step, len(self)) for start in range(0, len(self), step)]

    def read_piece(self, number: int) -> ExampleBatch:
        from bertdata.examples.columns import convert_to_item_types
        from bertdata.shards.rows import RecordCheck, check_batch, unpad_rows

        step = choose_block_rows(self.layout.max_seq_length)
        start = number * step
        record = RecordCheck(name=self._name, first=start)
        found = self._file.read(start, min(start + step, len(self)))
        block = unpad_rows(found, self._fields, self._objective.batch_type, record)
        check_batch(block, self.layout, record, _find_lowest_items(self._fields))
        return convert_to_item_types(block)


def _find_objective(file: IO[bytes], names: set[str], name: str) -> Objective:
    """Return the objective that the file names, or else the built-in objective with exactly the file's
    fields.

    If there is neither, return the default objective. Opening the datasets then reports the missing fields.

    names: names of the file's datasets.
    """
    named = read_objective(file)
    if named is not None:
        return find_objective_of_file(named, name)
    exact = [one for one in OBJECTIVES.values() if names == set(one.fields("hdf5"))]
    return exact[0] if exact else find_objective(DEFAULT_OBJECTIVE)


def _refuse_unknown_fields(names: set[str], objective: Objective, name: str) -> None:
    """Raise ShardError if the file has a field that is not one of the objective's.

    names: names of the file's datasets.
    """
    known = set(objective.fields("hdf5"))
    if known < names:
        others = escape_unprintable(", ".join(sorted(names - known)))
        raise ShardError(
            f"{name}: has also {others}, which examples of the objective {objective.name} have not; "
            "give --objective NAME, that of its examples"
        )


def _find_lowest_items(fields: Fields) -> dict[str, int]:
    """Return the lowest value that can be stored in each column whose rows end at the first padding value.

    The padding value itself cannot be stored there. Other columns are not in the result.
    """
    return {field.of: int(field.padding) + 1 for field in fields.values() if field.ends_at_padding}


def _find_row_shape(field: Field, layout: ShardLayout) -> tuple[int, ...]:
    return () if field.size is None else (layout.size(field.size),)


def _find_layout(file: Hdf5Input, objective: Objective, name: str) -> tuple[int, ShardLayout]:
    """Return the number of rows and their layout.

    Raises ShardError if the type or shape of a dataset does not fit.
    """
    from bertdata.shards.rows import check_layout

    fields, shapes = objective.fields("hdf5"), file.shapes
    for field, kind in file.kinds.items():
        if kind.kind not in "iu":
            raise ShardError(f"{name}: {field} is {kind}, expected integers ({fields[field].type})")
    # The width of a field's rows determines a size. For example, input_ids of shape [1000, 128] make
    # max_seq_length 128. The first field with a size decides. check_shapes then compares all other fields
    # with it.
    widest: dict[str, str] = {}
    for field, declared in fields.items():
        if declared.size is not None:
            widest.setdefault(declared.size, field)
    names = [size for size in objective.batch_type.sizes() if size in widest]
    for size in names:
        if len(shapes[widest[size]]) != 2:
            found = shapes[widest[size]]
            raise ShardError(f"{name}: {widest[size]} has shape {found}, expected two dimensions")
    rows = shapes[widest[IDS.size]][0]
    sizes = {size: shapes[widest[size]][1] for size in names}
    layout = ShardLayout.of_sizes(sizes, objective=objective.name)
    check_layout(layout, name, names)
    file.check_shapes({name: (rows, *_find_row_shape(field, layout)) for name, field in fields.items()})
    return rows, layout
