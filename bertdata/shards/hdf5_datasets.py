"""Write and read datasets of HDF5 files in blocks of rows.

While a file is written, only one block of rows is in memory.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from bertdata.errors import ShardError
from bertdata.io.signals import delay_signals
from bertdata.records import DEFAULT_OBJECTIVE
from bertdata.shards.hdf5_file import H5PY_ERRORS, ScratchHdf5, format_on_one_line, load_h5py
from bertdata.shards.protocol import Sink

if TYPE_CHECKING:
    from bertdata.examples.columns import Array

BLOCK_ROWS = 1024
# Size in bytes of a chunk of input_ids. It fits into HDF5's default chunk cache of 1 MiB.
BLOCK_BYTES = 512 * 1024
GZIP_LEVEL = 4
_OBJECTIVE = "bertdata.objective"
"""Name of the attribute of the file's root that stores the objective of the examples."""
_PADDING = "bertdata.padding_id"
"""Name of the attribute of the file's root that stores the id at padded positions. Without it the id is 0."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetSpec:
    """Description of an HDF5 dataset to create.

    type: type of its items.
    row: shape of a row. () means that each row is a single value.
    """

    type: Any
    row: tuple[int, ...]


class Hdf5Output:
    """Writer of an HDF5 file whose datasets all have the same number of rows. ``close`` copies the file to
    the sink.

    Each block of rows becomes one chunk of every dataset, and is written only once.
    """

    def __init__(
        self,
        sink: Sink,
        forms: Mapping[str, DatasetSpec],
        block_rows: int,
        gzip_level: int = GZIP_LEVEL,
        *,
        objective: str,
        shuffle: bool = False,
        padding_id: int = 0,
    ) -> None:
        """Create the datasets in a temporary file.

        sink: receives the bytes of the finished file.
        forms: the datasets to create, by name.
        block_rows: number of rows in a chunk.
        objective: the examples' objective, which is stored as an attribute.
        shuffle: True applies HDF5's shuffle filter before gzip. It puts the lowest bytes of all items of a
            chunk first, then the next bytes and so on.
        padding_id: id at padded positions, which is stored as an attribute if it is not 0.
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
        """Write the next rows of all datasets.

        rows: the rows of each dataset by name, equally many for all.
        """
        start, self._written = self._written, self._written + len(next(iter(rows.values())))
        with delay_signals():
            for name, values in rows.items():
                dataset = self._scratch.file[name]
                dataset.resize(self._written, axis=0)
                dataset[start:] = values
                # Write the chunk now. Otherwise HDF5 writes it when the dataset object is destroyed. A
                # profiler that inspects this thread's frames, such as Dask's, may keep the object alive and
                # so change the order of chunks.
                dataset.flush()
        self._scratch.check()

    def close(self) -> None:
        self._scratch.finish()


def write_objective(file: Any, objective: str) -> None:
    """Store the objective's name as an attribute of an HDF5 file, unless it is the default objective."""
    if objective != DEFAULT_OBJECTIVE:
        file.attrs[_OBJECTIVE] = objective


def read_objective(file: IO[bytes]) -> str | None:
    """Return the objective's name that an HDF5 file stores.

    Returns None if there is none, or if the file is unreadable.
    """
    h5py = load_h5py()
    try:
        found = h5py.File(file, "r").attrs.get(_OBJECTIVE)
    except H5PY_ERRORS:
        return None  # If the file is damaged, opening it as a shard reports it later.
    return found if isinstance(found, str) else None


def read_padding_id(file: IO[bytes]) -> int:
    """Return the padding id that an HDF5 file stores. 0 if there is none, or if the file is unreadable."""
    h5py = load_h5py()
    try:
        return int(h5py.File(file, "r").attrs.get(_PADDING, 0))
    except H5PY_ERRORS:
        return 0  # If the file is damaged, opening it as a shard reports it later.


def read_dataset_names(file: IO[bytes]) -> set[str]:
    """Return the names of the datasets in an HDF5 file.

    An unreadable file gives an empty set. Opening it as a shard reports the error. For a name that is not
    UTF-8, h5py returns bytes. The repr of these bytes is then used as the name.
    """
    h5py = load_h5py()
    try:
        return {name if isinstance(name, str) else repr(name) for name in h5py.File(file, "r")}
    except H5PY_ERRORS:
        return set()


class Hdf5Input:
    """Reader of the datasets of a seekable HDF5 file.

    How they are stored is checked before their values are read.

    Raises ShardError, which names the file and the record that cannot be read.

    kinds: item type of each dataset by name.
    shapes: shape of each dataset by name.
    """

    def __init__(self, file: IO[bytes], name: str, fields: list[str]) -> None:
        self._name = name
        self._file = file
        self._datasets = open_datasets(file, name, fields)
        with self._report_damage():
            self.kinds = {field: dataset.dtype for field, dataset in self._datasets.items()}
            self.shapes = {field: dataset.shape for field, dataset in self._datasets.items()}

    @contextmanager
    def _report_damage(self) -> Iterator[None]:
        """Convert exceptions that h5py raises in the ``with`` block to a ShardError that names the file."""
        try:
            yield
        except H5PY_ERRORS as error:
            raise ShardError(
                f"{self._name}: not a readable HDF5 file ({format_on_one_line(error)})"
            ) from error

    def check_shapes(self, expected: Mapping[str, tuple[int, ...]]) -> None:
        """Raise ShardError unless the datasets have the expected shapes, and chunks that HDF5 can read
        safely.
        """
        for field, shape in self.shapes.items():
            if shape != expected[field]:
                raise ShardError(f"{self._name}: {field} has shape {shape}, expected {expected[field]}")
            chunks = self._datasets[field].chunks
            if chunks and (len(chunks) != len(shape) or 0 in chunks):  # HDF5 hangs if it reads such chunks.
                raise ShardError(
                    f"{self._name}: {field} has chunks {chunks} in shape {shape}, expected as many dimensions"
                )

    def check_storage(self) -> None:
        """Raise ShardError unless all values are in this file. HDF5 files can refer to values in other
        files.
        """
        from bertdata.shards.hdf5_storage import check_storage

        with self._report_damage():
            check_storage(self._datasets, self._file.seek(0, 2), self._name)

    def drop_caches(self, rows: int) -> None:
        """Read without HDF5's cache of decompressed chunks where no chunk has rows of two blocks.

        The cache takes up to 1 MiB for each dataset as long as the file is open, and a trainer has hundreds
        of files open.

        rows: number of rows of a block. The rows are read block by block, from the first one on.
        """
        h5py = load_h5py()
        with self._report_damage():
            access = h5py.h5p.create(h5py.h5p.DATASET_ACCESS)
            access.set_chunk_cache(0, 0, 0.0)
            for field in list(self._datasets):
                chunks = self._datasets[field].chunks
                if chunks and rows % chunks[0] == 0:
                    # A dataset that is open keeps its cache, so it is closed and opened again.
                    closed = self._datasets.pop(field)
                    file, name = closed.file, closed.name.encode()
                    del closed
                    self._datasets[field] = h5py.Dataset(h5py.h5d.open(file.id, name, access))

    def read(self, start: int, stop: int, fields: Iterable[str] | None = None) -> "dict[str, Array]":
        """Return the rows ``start`` to ``stop - 1`` of several datasets, by the datasets' names.

        fields: names of the datasets. None means all.
        """
        try:
            return {field: self._datasets[field][start:stop] for field in fields or self._datasets}
        except H5PY_ERRORS as error:
            raise self._find_damage(start, stop, error) from error

    def _find_damage(self, start: int, stop: int, error: Exception) -> ShardError:
        """Find the first unreadable record among ``start`` to ``stop - 1``.

        Return a ShardError that names it.

        error: the exception that reading all these records raised.
        """
        damaged = [
            (first, last, field)
            for field, dataset in self._datasets.items()
            for first, last in _find_damaged_chunks(dataset, start, stop)
        ]
        first, last, field = min(damaged, default=(start, stop - 1, "a dataset"))
        return ShardError(
            f"{self._name}: record {first}: {field} of records {first} to {last} cannot be read, "
            f"expected an undamaged chunk ({format_on_one_line(error)})"
        )


def read_dataset_types(file: IO[bytes]) -> dict[str, str]:
    """Return the item type of each dataset by its name. Rows of varying length have the type "object".

    The result is empty if the file cannot be read.
    """
    h5py = load_h5py()
    try:
        with h5py.File(file, "r") as opened:
            links = {name: opened.get(name, getlink=True) for name in opened}
            found = {name: opened[name] for name, link in links.items() if isinstance(link, h5py.HardLink)}
            return {name: str(item.dtype) for name, item in found.items() if isinstance(item, h5py.Dataset)}
    except H5PY_ERRORS:
        return {}  # If the file is damaged, opening it as a shard reports it later.
    finally:
        file.seek(0)


def choose_block_rows(max_seq_length: int) -> int:
    """Return the number of rows in a chunk, for files with examples of up to max_seq_length ids.

    The chunks of all datasets of a file have the same number of rows.
    """
    return max(1, min(BLOCK_ROWS, BLOCK_BYTES // (4 * max_seq_length)))


def open_datasets(file: IO[bytes], name: str, fields: list[str]) -> dict[str, Any]:
    """Return the file's datasets by name. Raises ShardError if a dataset is missing."""
    h5py = load_h5py()
    from bertdata.shards.hdf5_storage import open_hard_link

    try:
        opened = h5py.File(file, "r")
        found = {field: open_hard_link(opened, field, name) for field in fields}
    except H5PY_ERRORS as error:
        raise ShardError(f"{name}: not a readable HDF5 file ({format_on_one_line(error)})") from error
    for field in fields:
        dataset = found.get(field)
        if not isinstance(dataset, h5py.Dataset):
            raise ShardError(f"{name}: no dataset {field}, expected {', '.join(fields)}")
    return found


def _find_damaged_chunks(dataset: Any, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield the first and the last record of each unreadable chunk, for the records ``start`` to ``stop -
    1``.
    """
    step = dataset.chunks[0] if dataset.chunks else 1
    for first in range(start - start % step, stop, step):
        last = min(first + step, dataset.shape[0]) - 1
        try:
            dataset[first : last + 1]
        except H5PY_ERRORS:
            yield first, last
