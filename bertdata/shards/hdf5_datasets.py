"""Datasets of HDF5 files, written and read in blocks of rows.

Writing never holds more than one block of rows in memory.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from bertdata.errors import ShardError
from bertdata.io.signals import delay_signals
from bertdata.records import DEFAULT_OBJECTIVE
from bertdata.shards.hdf5_file import H5PY_ERRORS, ScratchHdf5, load_h5py, one_line
from bertdata.shards.protocol import Sink

if TYPE_CHECKING:
    from bertdata.examples.columns import Array

BLOCK_ROWS = 1024
BLOCK_BYTES = 512 * 1024  # of input_ids; HDF5's default chunk cache is 1 MiB per dataset
GZIP_LEVEL = 4
_OBJECTIVE = "bertdata.objective"
"""Attribute of the file's root that names the objective of its examples."""
_PADDING = "bertdata.padding_id"
"""Attribute of the file's root that holds the id at padded positions, if it is not 0."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetForm:
    """A dataset to be created: item type, and shape of a row. () means a single value per row."""

    type: Any
    row: tuple[int, ...]


class Hdf5Output:
    """An HDF5 file of datasets with equal numbers of rows. ``close`` copies it to the sink.

    Each block of rows becomes one chunk of every dataset, and is written only once.
    """

    def __init__(
        self,
        sink: Sink,
        forms: Mapping[str, DatasetForm],
        block_rows: int,
        gzip_level: int = GZIP_LEVEL,
        *,
        objective: str,
        shuffle: bool = False,
        padding_id: int = 0,
    ) -> None:
        """Create the datasets in a temporary file.

        objective: the examples' objective, stored as an attribute.
        shuffle: apply HDF5's shuffle filter before gzip. It groups the lowest bytes of a chunk's items, then
        the next bytes and so on.
        padding_id: id at padded positions, stored as an attribute if it is not 0.
        """
        self._written = 0
        self._scratch = ScratchHdf5(sink)
        with delay_signals():
            write_objective(self._scratch.file, objective)
            if padding_id:
                self._scratch.file.attrs[_PADDING] = padding_id
            for name, form in forms.items():
                self._scratch.file.create_dataset(
                    name,
                    shape=(0, *form.row),
                    maxshape=(None, *form.row),
                    chunks=(block_rows, *form.row),
                    dtype=form.type,
                    compression="gzip",
                    compression_opts=gzip_level,
                    shuffle=shuffle,
                    track_times=False,
                )

    def append(self, rows: "Mapping[str, Array]") -> None:
        """Write the next rows, the same number for each dataset."""
        start, self._written = self._written, self._written + len(next(iter(rows.values())))
        with delay_signals():
            for name, values in rows.items():
                dataset = self._scratch.file[name]
                dataset.resize(self._written, axis=0)
                dataset[start:] = values
                # Without flush, HDF5 writes the chunk when the dataset object is destroyed. A profiler that
                # inspects this thread's frames, such as Dask's, may keep the object alive and so change the
                # order of chunks.
                dataset.flush()
        self._scratch.check()

    def close(self) -> None:
        self._scratch.finish()


def write_objective(file: Any, objective: str) -> None:
    """Store the objective in an HDF5 file's root, unless it is the default."""
    if objective != DEFAULT_OBJECTIVE:
        file.attrs[_OBJECTIVE] = objective


def read_objective(file: IO[bytes]) -> str | None:
    """Return the objective that an HDF5 file names. None if it names none or cannot be read."""
    h5py = load_h5py()
    try:
        found = h5py.File(file, "r").attrs.get(_OBJECTIVE)
    except H5PY_ERRORS:
        return None  # the reader will report the fault
    return found if isinstance(found, str) else None


def read_padding_id(file: IO[bytes]) -> int:
    """Return the id at padded positions that an HDF5 file names. 0 if it names none or cannot be read."""
    h5py = load_h5py()
    try:
        return int(h5py.File(file, "r").attrs.get(_PADDING, 0))
    except H5PY_ERRORS:
        return 0  # the reader will report the fault


def read_dataset_names(file: IO[bytes]) -> set[str]:
    """Return the names in an HDF5 file's root.

    Empty if the file cannot be read, which its reader will report. h5py returns a name that is not UTF-8 as
    bytes. Its repr is used then.
    """
    h5py = load_h5py()
    try:
        return {name if isinstance(name, str) else repr(name) for name in h5py.File(file, "r")}
    except H5PY_ERRORS:
        return set()


class Hdf5Input:
    """Datasets of a seekable HDF5 file, with any integer types and chunks, checked before they are read.

    kinds, shapes: item type and shape of each dataset by name. ShardError names the file and the record that
    cannot be read.
    """

    def __init__(self, file: IO[bytes], name: str, fields: list[str]) -> None:
        self._name = name
        self._file = file
        self._datasets = open_datasets(file, name, fields)
        with self._reporting_damage():
            self.kinds = {field: dataset.dtype for field, dataset in self._datasets.items()}
            self.shapes = {field: dataset.shape for field, dataset in self._datasets.items()}

    @contextmanager
    def _reporting_damage(self) -> Iterator[None]:
        """Turn h5py's exceptions into a ShardError that names the file."""
        try:
            yield
        except H5PY_ERRORS as error:
            raise ShardError(f"{self._name}: not a readable HDF5 file ({one_line(error)})") from error

    def check_shapes(self, expected: Mapping[str, tuple[int, ...]]) -> None:
        """Raise ShardError unless the datasets have these shapes, and chunks that HDF5 can handle."""
        for field, shape in self.shapes.items():
            if shape != expected[field]:
                raise ShardError(f"{self._name}: {field} has shape {shape}, expected {expected[field]}")
            chunks = self._datasets[field].chunks
            if chunks and (len(chunks) != len(shape) or 0 in chunks):  # HDF5 would hang
                raise ShardError(
                    f"{self._name}: {field} has chunks {chunks} in shape {shape}, expected as many dimensions"
                )

    def check_storage(self) -> None:
        """Raise ShardError unless all values lie in this file. See ``bertdata.shards.hdf5_storage``."""
        from bertdata.shards.hdf5_storage import check_storage

        with self._reporting_damage():
            check_storage(self._datasets, self._file.seek(0, 2), self._name)

    def read(self, start: int, stop: int, fields: Iterable[str] | None = None) -> "dict[str, Array]":
        """Return the rows from start to stop - 1 of the named datasets. fields: None for all datasets."""
        try:
            return {field: self._datasets[field][start:stop] for field in fields or self._datasets}
        except H5PY_ERRORS as error:
            raise self._find_damage(start, stop, error) from error

    def _find_damage(self, start: int, stop: int, error: Exception) -> ShardError:
        """Return the error for the first record between start and stop that cannot be read."""
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


def read_dataset_types(file: IO[bytes]) -> dict[str, str]:
    """Return the item type of each dataset, "object" if its rows vary in length.

    Empty if the file is unreadable.
    """
    h5py = load_h5py()
    try:
        with h5py.File(file, "r") as opened:
            links = {name: opened.get(name, getlink=True) for name in opened}
            found = {name: opened[name] for name, link in links.items() if isinstance(link, h5py.HardLink)}
            return {name: str(item.dtype) for name, item in found.items() if isinstance(item, h5py.Dataset)}
    except H5PY_ERRORS:
        return {}  # the reader will report the fault
    finally:
        file.seek(0)


def block_rows(max_seq_length: int) -> int:
    """Return the number of rows in a chunk. It is the same for every dataset of a file."""
    return max(1, min(BLOCK_ROWS, BLOCK_BYTES // (4 * max_seq_length)))


def open_datasets(file: IO[bytes], name: str, fields: list[str]) -> dict[str, Any]:
    """Return the file's datasets by name. ShardError if a dataset is missing."""
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


def _damaged_chunks(dataset: Any, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield the first and last record of each unreadable chunk between start and stop."""
    step = dataset.chunks[0] if dataset.chunks else 1
    for first in range(start - start % step, stop, step):
        last = min(first + step, dataset.shape[0]) - 1
        try:
            dataset[first : last + 1]
        except H5PY_ERRORS:
            yield first, last
