"""The columns of a dataset's shards, with the types in which the file format stores them."""

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

from bertdata.dataset.companion_files import make_shard_form
from bertdata.dataset.manifest import Manifest
from bertdata.errors import DataError
from bertdata.examples.objectives import find_objective
from bertdata.io import storage
from bertdata.shards.containers import ARROW, LDDL, MDS, NVIDIA_MLPERF, open_reader
from bertdata.shards.hdf5_file import load_h5py
from bertdata.shards.packed.fields import load_row_fields
from bertdata.shards.parquet_file import ParquetInput, load_pyarrow

ANY_LENGTH = -1


class StoredColumn(NamedTuple):
    """A column of a shard.

    type: type of a value: the name of a NumPy type such as int32, or bool, string or binary.
    length: number of values in each record, ANY_LENGTH if it varies. None if each record has a single value
        and no list.
    """

    name: str
    type: str
    length: int | None


def list_columns(directory: str, manifest: Manifest) -> list[StoredColumn]:
    """Return the columns of a dataset's shards, in their order in the first shard.

    The result is empty for a dataset without shards, and for a file format without columns (fairseq).
    """
    settings = manifest.plan.settings
    read = _READERS.get(settings.container["format"])
    if read is None or not manifest.shards:
        return []
    return list(read(storage.join(directory, manifest.shards[0].name), manifest))


def _read_parquet_columns(path: str, manifest: Manifest) -> Iterator[StoredColumn]:
    load_pyarrow()
    with storage.open_input(path) as file:
        yield from _convert_schema(ParquetInput(file, path).schema)


def _read_arrow_columns(path: str, manifest: Manifest) -> Iterator[StoredColumn]:
    load_pyarrow()
    with storage.open_input(path) as file:
        yield from _convert_schema(import_module("pyarrow.ipc").open_stream(file).schema)


def _convert_schema(schema: Any) -> Iterator[StoredColumn]:
    """Yield the columns of an Arrow schema."""
    types = import_module("pyarrow.types")
    for field in schema:
        is_list = types.is_list(field.type) or types.is_large_list(field.type)
        kind = str(field.type.value_type if is_list else field.type)
        yield StoredColumn(field.name, _ARROW_NAMES.get(kind, kind), ANY_LENGTH if is_list else None)


_ARROW_NAMES = {"float": "float32", "double": "float64", "large_string": "string", "large_binary": "binary"}
"""NumPy's names of types that Arrow calls otherwise."""


def _read_hdf5_columns(path: str, manifest: Manifest) -> Iterator[StoredColumn]:
    h5py = load_h5py()
    with storage.open_input(path) as file, h5py.File(file, "r") as shard:
        for name, data in shard.items():
            varying = h5py.check_vlen_dtype(data.dtype)
            if varying is not None:
                yield StoredColumn(name, str(varying), ANY_LENGTH)
            else:
                yield StoredColumn(name, str(data.dtype), data.shape[1] if data.ndim > 1 else None)


def _list_tfrecord_columns(path: str, manifest: Manifest) -> Iterator[StoredColumn]:
    """Yield the features of the records. TFRecord files do not name their features' types, so the
    declarations are taken.
    """
    objective = manifest.plan.objective
    with open_reader(path, objective=objective) as reader:
        layout = reader.layout
    if layout.packing is not None:
        for name, row_field in load_row_fields(layout.packing, "tfrecord").items():
            yield StoredColumn(name, row_field.type, row_field.width(layout) or ANY_LENGTH)
        return
    for name, field in find_objective(layout.objective).fields("tfrecord", layout).items():
        yield StoredColumn(name, field.type, ANY_LENGTH if field.shape == "*" else field.width(layout, 0))


def _list_mds_columns(path: str, manifest: Manifest) -> Iterator[StoredColumn]:
    form = make_shard_form(manifest.plan.settings)
    for name, kind in zip(form.names, form.types, strict=True):
        array, _, item = kind.partition(":")
        if array == "ndarray":
            yield StoredColumn(name, item, ANY_LENGTH)
        elif kind in _MDS_NAMES:
            yield StoredColumn(name, _MDS_NAMES[kind], None)
        else:
            raise DataError(f"{path}: column {name} has the type {kind}, which is not described here")


_MDS_NAMES = {"str": "string", "int": "int64"}

_READERS: dict[str, Callable[[str, Manifest], Iterator[StoredColumn]]] = {
    "parquet": _read_parquet_columns,
    LDDL: _read_parquet_columns,
    ARROW: _read_arrow_columns,
    "hdf5": _read_hdf5_columns,
    NVIDIA_MLPERF: _read_hdf5_columns,
    "tfrecord": _list_tfrecord_columns,
    MDS: _list_mds_columns,
}
"""The function that reads the columns of a shard, by file format."""
