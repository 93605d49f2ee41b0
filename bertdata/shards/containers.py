"""Containers of examples: TFRecord, HDF5, Parquet, MDS. One module each, one Writer and Reader protocol.

Files of packed rows are read here too, as their examples; ``bertdata.shards.packed`` writes them.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from bertdata._native import Engine
from bertdata.config.manifest_versions import parse_dataset_json
from bertdata.config.settings import FORMATS
from bertdata.errors import ShardError
from bertdata.examples.objective import Objective
from bertdata.examples.objectives import objective_of_file
from bertdata.io import storage
from bertdata.io.assets import find_vocabulary
from bertdata.io.file_kind import HEAD_BYTES
from bertdata.io.manifest_file import MANIFEST_NAME, parse_json
from bertdata.io.signatures import find_signature
from bertdata.records import ShardLayout, Vocabulary
from bertdata.shards import fairseq
from bertdata.shards.mds.layout import layout_in_manifest
from bertdata.shards.mds.names import INDEX_NAME, MDS, is_mds_name, load_numpy
from bertdata.shards.packed.layouts import make_pack_reader
from bertdata.shards.parquet_file import is_lddl, load_pyarrow
from bertdata.shards.protocol import ShardReader, ShardWriter, Sink
from bertdata.tokens.files import VocabularyFile, file_of_record, name_in_dataset
from bertdata.tokens.load import vocabulary_of

NVIDIA_MLPERF = "nvidia-mlperf"
"""HDF5 in rows of varying length, as ``convert --to nvidia-mlperf`` writes it."""

LDDL = "lddl"
"""LDDL's Parquet, as ``convert --to lddl`` writes it."""

ARROW = "arrow"
"""Arrow streams of Hugging Face's ``datasets``, as ``convert --to arrow`` writes them."""

FAIRSEQ = "fairseq"
"""A .bin of fairseq's with its .idx, as ``convert --to fairseq`` writes them."""

_MAGIC = {b"\x89HDF": "hdf5", b"PAR1": "parquet", b"\xff\xff\xff\xff": ARROW, b"ARRO": ARROW}


def make_writer(
    format: str, sink: Sink, layout: ShardLayout, engine: Engine | None = None, name: str | None = None
) -> ShardWriter:
    """A writer of one of FORMATS or of NVIDIA_MLPERF. Errors call the shard ``name``.

    HDF5, Parquet and MDS need their extras; they are imported only here.
    """
    name = name or f"{format} shard"
    if format == "hdf5":
        from bertdata.shards.hdf5 import Hdf5Writer

        return Hdf5Writer(sink, layout, name)
    if format == NVIDIA_MLPERF:
        from bertdata.shards.varlength import VarlengthWriter

        return VarlengthWriter(sink, layout, name)
    if format == "parquet":
        from bertdata.shards.parquet import ParquetWriter

        return ParquetWriter(sink, layout, name)
    if format == MDS:
        load_numpy()
        from bertdata.shards.mds.container import MdsWriter

        return MdsWriter(sink, layout, name)
    from bertdata.shards.tfrecord import TFRecordWriter

    return TFRecordWriter(sink, layout, engine, name)


def format_of(file: BinaryIO, name: str) -> str:
    """The container's format: MDS and fairseq's .bin by its name, others by their first bytes.

    TFRecord is what is left.
    """
    if is_mds_name(name) or storage.base_name(name) == INDEX_NAME:
        return MDS
    if name.endswith(".bin"):
        return FAIRSEQ
    magic = file.read(4)
    file.seek(0)
    return _MAGIC.get(magic, "tfrecord")


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
    """A reader of whatever container the file is. Errors call it ``name``.

    padding_id: the id in the empty places of a TFRecord, where it is known; else that of the first record.
    layout: that of the shard's dataset, for MDS, whose files do not say it; None: as the manifest beside it
    tells, else as its longest example. An index of MDS is read as all its shards. ids_type: of the ids in an
    MDS column of bytes.
    vocabulary: path or name of that which LDDL's words need; None: vocab.txt beside the shard.

    A PackReader where the rows are packed. objective: the name of that of its examples, where it is
    known; else the file names it, or has exactly the fields of one of ours. One of somebody else's must be
    loaded already (``find_objective``): no file imports code.
    """
    format = format_of(file, name)
    known = objective_of_file(objective, name) if objective else None
    if format == MDS:
        return _mds_reader(file, name, known, layout, ids_type)
    if format == FAIRSEQ:
        fairseq.load_numpy()
        from bertdata.shards.fairseq.blocks import FairseqReader

        return FairseqReader(file, name, known, _sizes_of(name))
    packed = make_pack_reader(file, name, format, engine, known)
    if packed is not None:
        return packed
    if format == "hdf5":
        from bertdata.shards.hdf5 import Hdf5Reader
        from bertdata.shards.varlength import VarlengthReader, is_varlength_file

        reader = VarlengthReader if is_varlength_file(file) else Hdf5Reader
        return reader(file, name, known)
    if format == "parquet":
        from bertdata.shards.parquet import ParquetReader

        if is_lddl(file):
            from bertdata.shards.lddl import LddlReader

            return LddlReader(file, name, _words_of(name, vocabulary), known)
        return ParquetReader(file, name, known)
    if format == ARROW:
        load_pyarrow()
        from bertdata.shards.arrow_reader import ArrowReader

        return ArrowReader(file, name, known)
    _refuse_other_files(file, name)
    from bertdata.shards.tfrecord import TFRecordReader

    return TFRecordReader(file, name, engine, known, padding_id)


def _refuse_other_files(file: BinaryIO, name: str) -> None:
    """ShardError for a file that is plainly no TFRecord, a compressed one for instance, with what to do."""
    head = file.read(HEAD_BYTES)
    file.seek(0)
    kind = find_signature(head, name)
    if kind is not None and kind.name != "TFRecord":
        raise ShardError(f"{name}: looks like {kind.name}, expected a shard; {kind.remedy}")


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


def _sizes_of(shard: str) -> dict[str, int] | None:
    """The sizes of the examples in the manifest beside the shard. None where none lists it."""
    manifest = _manifest_of(shard)
    if manifest is None:
        return None
    settings = manifest["settings"]["objective"]
    return {what: settings[what] for what in objective_of_file(fairseq.OBJECTIVE, shard).batch_type.sizes()}


def _mds_reader(
    file: BinaryIO,
    name: str,
    objective: Objective | None,
    layout: ShardLayout | None,
    ids_type: str | None,
) -> ShardReader:
    load_numpy()
    from bertdata.shards.mds.container import MdsDirectoryReader, MdsReader

    if layout is None and (manifest := _manifest_of(name)) is not None:
        layout = layout_in_manifest(manifest, name)
    if storage.base_name(name) == INDEX_NAME:
        return MdsDirectoryReader(name, file.read(), objective, layout, ids_type)
    return MdsReader(file, name, objective, layout, ids_type)


def _words_of(shard: str, vocabulary: str | None) -> Vocabulary:
    """The vocabulary of a shard's words. ShardError for another than that of the manifest which lists it."""
    manifest = _manifest_of(shard)
    tokenizer = manifest["settings"]["tokenizer"] if manifest else None
    if vocabulary is not None:
        path = find_vocabulary(vocabulary)
    else:
        name = name_in_dataset(tokenizer or {})
        path = storage.join(storage.parent(shard), name)
        if not storage.exists(path):
            raise ShardError(
                f"{shard}: holds words, as LDDL's shards do, and no {name} lies beside it; put "
                "the vocabulary there, or give --vocab where there is one"
            )
    file = file_of_record(tokenizer, path) if tokenizer else VocabularyFile(path=path, dialect="mlperf")
    found = vocabulary_of(file)
    if tokenizer and found.md5 != (md5 := tokenizer["vocabulary"]["md5"]):
        raise ShardError(
            f"{path}: md5 {found.md5}, expected {md5}, the vocabulary that {shard} was made with"
        )
    return found


def _manifest_of(shard: str) -> dict[str, Any] | None:
    """The manifest beside the shard, as JSON of the latest version, if it lists it."""
    path = storage.join(storage.parent(shard), MANIFEST_NAME)
    if not storage.exists(path):
        return None
    value = parse_json(storage.read_bytes(path), path)
    if value.get("kind") != "dataset":
        return None
    value = parse_dataset_json(storage.read_bytes(path), path).value
    names = {INDEX_NAME, *(entry["name"] for entry in value["shards"])}
    return value if storage.base_name(shard) in names else None


def is_shard_name(path: str) -> bool:
    """True for a file name that ends as one of a container that is read here."""
    if path.endswith(f".{ARROW}"):
        return True
    try:
        format_of_name(path)
    except ShardError:
        return False
    return True


def format_of_name(path: str) -> str:
    """The format that a file name's ending says. ShardError for any other ending."""
    ending = re.sub(r"parquet_\d+$", "parquet", path.rsplit(".", 1)[-1].lower())  # LDDL's bins
    ending = re.sub(r"^tfrecord-\d+-of-\d+$", "tfrecord", ending)  # ELECTRA's files
    if is_mds_name(path):
        return MDS
    aliases = {"h5": "hdf5", "tfrecords": "tfrecord", "pq": "parquet"}
    format = aliases.get(ending, ending)
    if format not in FORMATS:
        found = f"ends in .{ending}" if "." in storage.base_name(path) else "has a name without an ending"
        raise ShardError(f"{path}: {found}, expected one of .{', .'.join(FORMATS)}")
    return format


__all__ = [
    "ARROW",
    "FAIRSEQ",
    "FORMATS",
    "LDDL",
    "MDS",
    "NVIDIA_MLPERF",
    "format_of",
    "format_of_name",
    "is_shard_name",
    "make_reader",
    "make_writer",
    "open_reader",
]
