"""Containers of examples by name, and the one that a file is. ``formats.py`` has a class for each.

Files of packed rows are read here too, as their examples; ``bertdata.shards.packed`` writes them.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from bertdata._native import Engine
from bertdata.config.settings import FORMATS
from bertdata.errors import SettingsError, ShardError
from bertdata.examples.objectives import objective_of_file
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
"""By the name in a manifest. Those that ``create`` makes are in FORMATS too.

A file is of the first one whose name or first bytes it has, so other programs' layouts of HDF5 and of Parquet
come behind these.
"""

NVIDIA_MLPERF, LDDL, ARROW, FAIRSEQ = NvidiaMlperf.name, Lddl.name, Arrow.name, Fairseq.name


def find_container(format: str) -> Container:
    """The container of that name. SettingsError where there is none."""
    if format not in CONTAINERS:
        raise SettingsError(f"format is {format!r}, expected one of {', '.join(CONTAINERS)}")
    return CONTAINERS[format]


def make_writer(
    format: str, sink: Sink, layout: ShardLayout, engine: Engine | None = None, name: str | None = None
) -> ShardWriter:
    """A writer of the container of that name. Errors call the shard ``name``."""
    return find_container(format).make_writer(sink, layout, engine, name or f"{format} shard")


def container_of(file: BinaryIO, name: str) -> Container:
    """The container of a file: as its name tells where that decides, else as its first bytes do.

    TFRecord is what is left. The file is back at its start.
    """
    if storage.base_name(name) == INDEX_NAME:
        return CONTAINERS[MDS]
    for container in CONTAINERS.values():
        if container.is_told_by_name and container.is_name(name):
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
    """A reader of whatever container the file is. What is known of it: ReadRequest.

    A PackReader where the rows are packed. objective: the name of that of its examples, where it is
    known; else the file names it, or has exactly the fields of one of ours. One of somebody else's must be
    loaded already (``find_objective``): no file imports code.
    """
    container = container_of(file, name)
    known = ReadRequest(
        name=name,
        engine=engine,
        objective=objective_of_file(objective, name) if objective else None,
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
    """A reader of the shard at the path or URL. See make_reader."""
    name = os.fspath(path)
    with storage.open_input(name) as file:
        yield make_reader(file, name, engine, objective, vocabulary, padding_id, ids_type=ids_type)


def container_named(path: str) -> Container | None:
    """The container that a file name's ending says. None where it says none."""
    return next((one for one in CONTAINERS.values() if one.is_name(path)), None)


def is_shard_name(path: str) -> bool:
    """True for a file name that ends as one of a container that is looked for in directories."""
    container = container_named(path)
    return container is not None and container.is_looked_for


def format_of_name(path: str) -> str:
    """The format that a file name's ending says, of those that are made. ShardError for any other ending."""
    container = container_named(path)
    if container is None or container.name not in FORMATS:
        ending = path.rsplit(".", 1)[-1].lower()
        found = f"ends in .{ending}" if "." in storage.base_name(path) else "has a name without an ending"
        raise ShardError(f"{path}: {found}, expected one of .{', .'.join(FORMATS)}")
    return container.name


__all__ = [
    "ARROW",
    "CONTAINERS",
    "FAIRSEQ",
    "FORMATS",
    "LDDL",
    "MDS",
    "NVIDIA_MLPERF",
    "container_named",
    "container_of",
    "find_container",
    "format_of_name",
    "is_shard_name",
    "make_reader",
    "make_writer",
    "open_reader",
]
