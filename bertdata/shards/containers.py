"""All containers by name, and functions that find the container of a file. ``container_classes`` defines
them.

Files of packed rows, which hold several examples per row, are read as single examples.
``bertdata.shards.packed`` writes such files.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from bertdata._native import Engine
from bertdata.config.settings import FORMATS
from bertdata.errors import SettingsError, ShardError
from bertdata.examples.objectives import find_objective_of_file
from bertdata.io import storage
from bertdata.records import ShardLayout
from bertdata.shards.container import Container, ReadRequest
from bertdata.shards.container_classes import Arrow, Fairseq, Hdf5, Lddl, Mds, NvidiaMlperf, Parquet, TFRecord
from bertdata.shards.mds.names import INDEX_NAME, MDS
from bertdata.shards.packed.layouts import make_pack_reader
from bertdata.shards.protocol import ShardReader, ShardWriter, Sink

CONTAINERS: dict[str, Container] = {
    one.name: one
    for one in (TFRecord(), Hdf5(), Parquet(), Mds(), Arrow(), Fairseq(), NvidiaMlperf(), Lddl())
}
"""All containers by name. FORMATS lists the names of those that ``create`` can write.

A file belongs to the first container whose file name or first bytes match. The variants of HDF5 and Parquet
that other programs use therefore come after the plain formats.
"""

NVIDIA_MLPERF, LDDL, ARROW, FAIRSEQ = NvidiaMlperf.name, Lddl.name, Arrow.name, Fairseq.name


def find_container(format: str) -> Container:
    """Return the container with this name. Raises SettingsError for an unknown name."""
    if format not in CONTAINERS:
        raise SettingsError(f"format is {format!r}, expected one of {', '.join(CONTAINERS)}")
    return CONTAINERS[format]


def make_writer(
    format: str, sink: Sink, layout: ShardLayout, engine: Engine | None = None, name: str | None = None
) -> ShardWriter:
    """Return an object that writes examples to a shard in the container with this name.

    format: name of the container.
    sink: receives the shard's bytes.
    name: the shard, for errors.
    """
    return find_container(format).make_writer(sink, layout, engine, name or f"{format} shard")


def recognise_container(file: BinaryIO, name: str) -> Container:
    """Return the container to which a file belongs, judged by its name and its first bytes.

    If nothing matches, the result is TFRecord. The file is rewound.
    """
    if storage.get_base_name(name) == INDEX_NAME:
        return CONTAINERS[MDS]
    for container in CONTAINERS.values():
        if container.is_recognised_by_name and container.matches_name(name):
            return container
    head = file.read(max(len(begin) for one in CONTAINERS.values() for begin in one.first_bytes))
    file.seek(0)
    found = (one for one in CONTAINERS.values() if head.startswith(one.first_bytes))
    return next(found, CONTAINERS[TFRecord.name])


def make_reader(
    file: BinaryIO,
    name: str,
    engine: Engine | None = None,
    objective: str | None = None,
    vocabulary: str | None = None,
    padding_id: int | None = None,
    layout: ShardLayout | None = None,
    ids_type: str | None = None,
) -> ShardReader:
    """Return an object that reads examples from a file of any container.

    The reader of packed rows is a PackReader.

    objective: name of the examples' objective. None takes the name stored in the file. If there is none, the
        built-in objective with the file's fields is taken. A user's objective must be loaded with
        ``find_objective`` before, because reading a file must not import code.

    The other arguments are described in ReadRequest.
    """
    container = recognise_container(file, name)
    known = ReadRequest(
        name=name,
        engine=engine,
        objective=find_objective_of_file(objective, name) if objective else None,
        vocabulary=vocabulary,
        padding_id=padding_id,
        layout=layout,
        ids_type=ids_type,
    )
    packed = make_pack_reader(file, name, container.name, engine, known.objective)
    return container.make_reader(file, known) if packed is None else packed


@contextmanager
def open_reader(
    path: str | os.PathLike[str],
    engine: Engine | None = None,
    objective: str | None = None,
    vocabulary: str | None = None,
    padding_id: int | None = None,
    ids_type: str | None = None,
) -> Iterator[ShardReader]:
    """Open the shard at a path or URL and yield its reader. The arguments are those of make_reader."""
    name = os.fspath(path)
    with storage.open_input(name) as file:
        yield make_reader(file, name, engine, objective, vocabulary, padding_id, ids_type=ids_type)


def find_container_by_name(path: str) -> Container | None:
    """Return the container to which the ending of a file name belongs, or None."""
    return next((one for one in CONTAINERS.values() if one.matches_name(path)), None)


def is_shard_name(path: str) -> bool:
    """Return True if a file with this name counts as a shard in a directory without a manifest."""
    container = find_container_by_name(path)
    return container is not None and container.is_found_in_directories


def find_writable_format(path: str) -> str:
    """Return the name of the container to which the ending of a file name belongs.

    Raises ShardError if there is none that ``create`` can write.
    """
    container = find_container_by_name(path)
    if container is None or container.name not in FORMATS:
        known = ", .".join(FORMATS)
        if "." not in storage.get_base_name(path):
            raise ShardError(f"{path}: has a name without an ending, expected one of .{known}")
        raise ShardError(f"{path}: ends in .{path.rsplit('.', 1)[-1].lower()}, expected one of .{known}")
    return container.name


__all__ = [
    "ARROW",
    "CONTAINERS",
    "FAIRSEQ",
    "FORMATS",
    "LDDL",
    "MDS",
    "NVIDIA_MLPERF",
    "find_container_by_name",
    "recognise_container",
    "find_container",
    "find_writable_format",
    "is_shard_name",
    "make_reader",
    "make_writer",
    "open_reader",
]
