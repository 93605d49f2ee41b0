"""HDF5 shards as NVIDIA's and Habana's trainers read them: a gzip-compressed dataset a field, no weights.

The first masked position 0 ends a row's masks, so position 0 itself cannot be masked. Writing never
holds more than one block of examples.
"""

from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from bertdata.errors import ShardError
from bertdata.examples.bert.objective import BERT
from bertdata.examples.fields import Fields
from bertdata.examples.objective import Objective
from bertdata.examples.objectives import find_objective
from bertdata.io.signals import signals_held
from bertdata.records import ExampleBatch, ShardLayout
from bertdata.shards.hdf5_file import H5PY_ERRORS, ScratchHdf5, load_h5py, one_line
from bertdata.shards.protocol import ShardReader, Sink

if TYPE_CHECKING:
    from bertdata.examples.columns import Array

BLOCK_ROWS = 1024
BLOCK_BYTES = 512 * 1024  # of input_ids; HDF5's chunk cache holds 1 MiB a dataset, unasked
GZIP_LEVEL = 4


class Hdf5Writer:
    """Writes batches into a temporary local file, since HDF5 seeks, and copies it to the sink at ``close``.

    The bytes do not depend on how the examples were batched: each chunk is written once, whole.
    """

    def __init__(self, sink: Sink, layout: ShardLayout) -> None:
        load_h5py()
        from bertdata.examples.columns import Regrouping
        from bertdata.shards import rows

        rows.check_writable(layout, "hdf5")
        self._layout = layout
        self._received = 0
        self._written = 0
        self._blocks: Regrouping[ExampleBatch] = Regrouping(_block_rows(layout))
        self._fields = find_objective(layout.objective).fields("hdf5", layout)
        self._lowest_position = _lowest_position(self._fields)
        self._scratch = ScratchHdf5(sink)
        with signals_held():
            for field in self._fields:
                self._create(field)

    def _create(self, field: str) -> None:
        width = _row_shape(self._fields[field].shape, self._layout)
        self._scratch.file.create_dataset(
            field,
            shape=(0, *width),
            maxshape=(None, *width),
            chunks=(_block_rows(self._layout), *width),
            dtype=self._fields[field].type,
            compression="gzip",
            compression_opts=GZIP_LEVEL,
            track_times=False,
        )

    def write(self, batch: ExampleBatch) -> None:
        from bertdata.examples.columns import arrays
        from bertdata.shards import rows

        batch = arrays(batch)
        record = rows.RecordCheck(name="hdf5 shard", first=self._received)
        rows.check_batch(batch, self._layout, record, self._lowest_position)
        self._received += len(batch)
        for block in self._blocks.add(batch):
            self._write_block(block)

    def _write_block(self, block: ExampleBatch) -> None:
        from bertdata.shards.rows import pad

        start, self._written = self._written, self._written + len(block)
        with signals_held():
            for field, rows in pad(block, self._layout, self._fields).items():
                dataset = self._scratch.file[field]
                dataset.resize(self._written, axis=0)
                dataset[start:] = rows
                # Else the chunk is written, and gets its place in the file, when the object goes: a profiler
                # that looks at this thread's frames (Dask's does) may hold it for longer.
                dataset.flush()
        self._scratch.check()

    def close(self) -> None:
        for block in self._blocks.rest():
            self._write_block(block)
        self._scratch.finish()


class Hdf5Reader(ShardReader):
    """Reads any tool's file of this layout, whatever its integer types and chunks, from a seekable file."""

    layout: ShardLayout

    def __init__(self, file: IO[bytes], name: str, objective: Objective = BERT) -> None:
        self._name = name
        self._objective = objective
        self._fields = objective.fields("hdf5")
        self._datasets = open_datasets(file, name, list(self._fields))
        self._rows, self.layout = _find_layout(self._datasets, objective, name)
        _check_storage(self._datasets, file, name)

    def __len__(self) -> int:
        return self._rows

    def batches(self, size: int) -> Iterator[ExampleBatch]:
        from bertdata.examples.columns import regroup

        return regroup(self._blocks(), size)

    def _blocks(self) -> Iterator[ExampleBatch]:
        from bertdata.examples.columns import narrow
        from bertdata.shards.rows import RecordCheck, check_batch, unpad

        step, lowest_position = _block_rows(self.layout), _lowest_position(self._fields)
        for start in range(0, len(self), step):
            record = RecordCheck(name=self._name, first=start)
            found = self._read(start, min(start + step, len(self)))
            block = unpad(found, self._fields, self._objective.batch_type, record)
            check_batch(block, self.layout, record, lowest_position)
            yield narrow(block)

    def _read(self, start: int, stop: int) -> "dict[str, Array]":
        try:
            return {field: dataset[start:stop] for field, dataset in self._datasets.items()}
        except H5PY_ERRORS as error:
            raise self._find_damage(start, stop, error) from error

    def _find_damage(self, start: int, stop: int, error: Exception) -> ShardError:
        """The error that names the first record in ``start`` to ``stop`` that cannot be read."""
        damaged = [
            (first, last, field)
            for field, dataset in self._datasets.items()
            for first, last in _damaged_chunks(dataset, start, stop)
        ]
        first, last, field = min(damaged, default=(start, stop - 1, "a dataset"))
        return ShardError(
            f"{self._name}: record {first}: {field} of records {first} to {last} cannot be read, "
            f"expected an undamaged chunk ({one_line(error)})"
        )


def _lowest_position(fields: Fields) -> int:
    """1 where a position 0 would end the masks."""
    return int(any(field.ends_at_padding for field in fields.values()))


def _block_rows(layout: ShardLayout) -> int:
    """Rows of a chunk, the same in every dataset, so that one block of examples is one chunk of each."""
    return max(1, min(BLOCK_ROWS, BLOCK_BYTES // (4 * layout.max_seq_length)))


def _row_shape(declared: str, layout: ShardLayout) -> tuple[int, ...]:
    shapes = {"S": (layout.max_seq_length,), "P": (layout.max_predictions_per_seq,), "1": ()}
    return shapes[declared]


def open_datasets(file: IO[bytes], name: str, fields: list[str]) -> dict[str, Any]:
    h5py = load_h5py()
    from bertdata.shards.hdf5_storage import open_hard_link

    try:
        opened = h5py.File(file, "r")
        found = {field: open_hard_link(opened, field, name) for field in fields}
    except H5PY_ERRORS as error:
        raise ShardError(f"{name}: not a readable HDF5 file ({one_line(error)})") from error
    for field in fields:
        dataset = found.get(field)
        if not isinstance(dataset, h5py.Dataset):
            raise ShardError(f"{name}: no dataset {field}, expected {', '.join(fields)}")
    return found


def _find_layout(datasets: dict[str, Any], objective: Objective, name: str) -> tuple[int, ShardLayout]:
    """Number of rows and their layout; ShardError if a dataset's type or shape does not fit the others."""
    from bertdata.shards.rows import check_layout

    fields = objective.fields("hdf5")
    try:
        kinds = {field: dataset.dtype for field, dataset in datasets.items()}
        shapes = {field: dataset.shape for field, dataset in datasets.items()}
    except H5PY_ERRORS as error:
        raise ShardError(f"{name}: not a readable HDF5 file ({one_line(error)})") from error
    for field, kind in kinds.items():
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
    for field, shape in shapes.items():
        expected = (rows, *_row_shape(fields[field].shape, layout))
        if shape != expected:
            raise ShardError(f"{name}: {field} has shape {shape}, expected {expected}")
        chunks = datasets[field].chunks
        if chunks and (len(chunks) != len(shape) or 0 in chunks):  # HDF5 would never come back
            raise ShardError(
                f"{name}: {field} has chunks {chunks} in shape {shape}, expected as many dimensions"
            )
    return rows, layout


def _check_storage(datasets: dict[str, Any], file: IO[bytes], name: str) -> None:
    from bertdata.shards.hdf5_storage import check_storage

    try:
        check_storage(datasets, file.seek(0, 2), name)
    except H5PY_ERRORS as error:
        raise ShardError(f"{name}: not a readable HDF5 file ({one_line(error)})") from error


def _damaged_chunks(dataset: Any, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """First and last record of each chunk between ``start`` and ``stop`` that cannot be read."""
    step = dataset.chunks[0] if dataset.chunks else 1
    for first in range(start - start % step, stop, step):
        last = min(first + step, dataset.shape[0]) - 1
        try:
            dataset[first : last + 1]
        except H5PY_ERRORS:
            yield first, last
