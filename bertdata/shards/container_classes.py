"""The containers of examples. Each class makes the writer and the reader of one file format."""

from typing import Any, BinaryIO

from bertdata._native import Engine
from bertdata.config.manifest_versions import parse_dataset_json
from bertdata.errors import ShardError
from bertdata.examples.objectives import find_objective_of_file
from bertdata.io import outputs, storage
from bertdata.io.assets import find_vocabulary
from bertdata.io.file_kind import HEAD_BYTES
from bertdata.io.manifest_file import MANIFEST_NAME, parse_json
from bertdata.io.signatures import find_signature
from bertdata.records import ExampleBatch, ShardLayout, Vocabulary
from bertdata.shards import fairseq
from bertdata.shards.container import Container, ReadRequest
from bertdata.shards.mds.fit import check_unmasked, read_layout_from_manifest
from bertdata.shards.mds.names import INDEX_NAME, MDS, is_mds_name, load_numpy
from bertdata.shards.parquet_file import is_lddl_file, load_pyarrow
from bertdata.shards.protocol import ShardReader, ShardWriter, Sink
from bertdata.tokens.files import VocabularyFile, name_in_dataset, read_file_record
from bertdata.tokens.load import vocabulary_of


class TFRecord(Container):
    """TFRecord, TensorFlow's file format, with a serialised ``tf.train.Example`` message per example.

    Any file that no other container recognises is read as TFRecord.
    """

    name = "tfrecord"
    form = outputs.TFRECORD
    ending = r"tfrecords?|tfrecord-\d+-of-\d+"  # the names of ELECTRA's files end in a number
    is_canonical = True
    has_single_rows = True

    def make_writer(self, sink: Sink, layout: ShardLayout, engine: Engine | None, name: str) -> ShardWriter:
        from bertdata.shards.tfrecord import TFRecordWriter

        return TFRecordWriter(sink, layout, engine, name)

    def make_reader(self, file: BinaryIO, known: ReadRequest) -> ShardReader:
        from bertdata.shards.tfrecord import TFRecordReader

        _refuse_other_files(file, known.name)
        return TFRecordReader(file, known.name, known.engine, known.objective, known.padding_id)


class Hdf5(Container):
    """HDF5, with one example per row.

    Rows are padded to a fixed length, or have a varying length as in NVIDIA's files for MLPerf.
    """

    name = "hdf5"
    form = outputs.HDF5
    ending = "hdf5|h5"
    first_bytes = (b"\x89HDF",)

    def make_writer(self, sink: Sink, layout: ShardLayout, engine: Engine | None, name: str) -> ShardWriter:
        from bertdata.shards.hdf5 import Hdf5Writer

        return Hdf5Writer(sink, layout, name)

    def make_reader(self, file: BinaryIO, known: ReadRequest) -> ShardReader:
        from bertdata.shards.hdf5 import Hdf5Reader
        from bertdata.shards.varlength import VarlengthReader, is_varlength_file

        reader = VarlengthReader if is_varlength_file(file) else Hdf5Reader
        return reader(file, known.name, known.objective)


class Parquet(Container):
    """Parquet, with lists of ids, or with words instead of ids as in LDDL's files."""

    name = "parquet"
    form = outputs.PARQUET
    ending = r"parquet|pq|parquet_\d+"  # the file names of LDDL's length bins end in a number
    first_bytes = (b"PAR1",)

    def make_writer(self, sink: Sink, layout: ShardLayout, engine: Engine | None, name: str) -> ShardWriter:
        from bertdata.shards.parquet import ParquetWriter

        return ParquetWriter(sink, layout, name)

    def make_reader(self, file: BinaryIO, known: ReadRequest) -> ShardReader:
        from bertdata.shards.parquet import ParquetReader

        if is_lddl_file(file):
            from bertdata.shards.lddl import LddlReader

            words = _load_words(known.name, known.vocabulary)
            return LddlReader(file, known.name, words, known.objective)
        return ParquetReader(file, known.name, known.objective)


class Mds(Container):
    """MDS, the file format of Mosaic's Streaming, with unmasked ids.

    If the file is an ``index.json``, all shards that it lists are read one after another.
    """

    name = MDS
    form = outputs.MDS
    is_recognised_by_name = True
    has_single_rows = True
    holds_word_starts = False

    def matches_name(self, path: str) -> bool:
        return is_mds_name(path)

    def check_examples(self, batch_type: type[ExampleBatch], objective: str, *, has_masks: bool) -> None:
        check_unmasked(batch_type, objective, {"masks": has_masks})

    def make_writer(self, sink: Sink, layout: ShardLayout, engine: Engine | None, name: str) -> ShardWriter:
        load_numpy()
        from bertdata.shards.mds.container import MdsWriter

        return MdsWriter(sink, layout, name)

    def make_reader(self, file: BinaryIO, known: ReadRequest) -> ShardReader:
        """Return a reader for an MDS shard, or for all shards that an ``index.json`` lists.

        MDS does not record how long examples may be. The manifest next to the shard gives the limit. Without
        a manifest, the longest example does.
        """
        load_numpy()
        from bertdata.shards.mds.container import MdsDirectoryReader, MdsReader

        layout = known.layout
        if layout is None and (manifest := _read_manifest(known.name)) is not None:
            layout = read_layout_from_manifest(manifest, known.name)
        if storage.get_base_name(known.name) == INDEX_NAME:
            return MdsDirectoryReader(known.name, file.read(), known.objective, layout, known.ids_type)
        return MdsReader(file, known.name, known.objective, layout, known.ids_type)


class Arrow(Container):
    """The Arrow streams of Hugging Face's ``datasets``. ``convert --to arrow`` writes them."""

    name = "arrow"
    first_bytes = (b"\xff\xff\xff\xff", b"ARRO")

    def matches_name(self, path: str) -> bool:
        return path.endswith(".arrow")

    def make_reader(self, file: BinaryIO, known: ReadRequest) -> ShardReader:
        load_pyarrow()
        from bertdata.shards.arrow_reader import ArrowReader

        return ArrowReader(file, known.name, known.objective)


class Fairseq(Container):
    """fairseq's .bin with the .idx next to it. ``convert --to fairseq`` writes them."""

    name = "fairseq"
    is_recognised_by_name = True
    # A .bin counts as a shard only if there is an .idx next to it, which bertdata.dataset.discover checks.
    is_found_in_directories = False

    def matches_name(self, path: str) -> bool:
        return path.endswith(".bin")

    def make_reader(self, file: BinaryIO, known: ReadRequest) -> ShardReader:
        fairseq.load_numpy()
        from bertdata.shards.fairseq.blocks import FairseqReader

        return FairseqReader(file, known.name, known.objective, _read_sizes(known.name))


class NvidiaMlperf(Hdf5):
    """HDF5 with rows of varying length, as NVIDIA's files for MLPerf. ``convert --to nvidia-mlperf`` writes
    it.
    """

    name = "nvidia-mlperf"

    def make_writer(self, sink: Sink, layout: ShardLayout, engine: Engine | None, name: str) -> ShardWriter:
        from bertdata.shards.varlength import VarlengthWriter

        return VarlengthWriter(sink, layout, name)


class Lddl(Parquet):
    """LDDL's Parquet, which holds words. ``convert --to lddl`` writes it, with the help of a vocabulary."""

    name = "lddl"

    def make_writer(self, sink: Sink, layout: ShardLayout, engine: Engine | None, name: str) -> ShardWriter:
        raise NotImplementedError("lddl: its writer needs a vocabulary: bertdata.build.conversion.shard")


def _refuse_other_files(file: BinaryIO, name: str) -> None:
    """Raise ShardError if the file is clearly no TFRecord, for example a compressed file.

    The message has a remedy.
    """
    head = file.read(HEAD_BYTES)
    file.seek(0)
    kind = find_signature(head, name)
    if kind is not None and kind.name != "TFRecord":
        raise ShardError(f"{name}: looks like {kind.name}, expected a shard; {kind.remedy}")


def _read_sizes(shard: str) -> dict[str, int] | None:
    """Return the largest sizes of the examples by name, such as the most ids, from the manifest next to the
    shard.

    Returns None if there is no manifest, or if it does not list the shard.
    """
    manifest = _read_manifest(shard)
    if manifest is None:
        return None
    settings = manifest["settings"]["objective"]
    return {
        what: settings[what] for what in find_objective_of_file(fairseq.OBJECTIVE, shard).batch_type.sizes()
    }


def _load_words(shard: str, vocabulary: str | None) -> Vocabulary:
    """Load the vocabulary that converts the words of an LDDL shard to ids.

    Raises ShardError if its md5 differs from the md5 in the manifest next to the shard.

    vocabulary: path or name that the user gave. None means the vocabulary file next to the shard.
    """
    manifest = _read_manifest(shard)
    tokenizer = manifest["settings"]["tokenizer"] if manifest else None
    if vocabulary is not None:
        path = find_vocabulary(vocabulary)
    else:
        name = name_in_dataset(tokenizer or {})
        path = storage.join(storage.get_parent(shard), name)
        if not storage.exists(path):
            raise ShardError(
                f"{shard}: holds words, as LDDL's shards do, and no {name} lies beside it; put "
                "the vocabulary there, or give --vocab where there is one"
            )
    file = read_file_record(tokenizer, path) if tokenizer else VocabularyFile(path=path, dialect="mlperf")
    found = vocabulary_of(file)
    if tokenizer and found.md5 != (md5 := tokenizer["vocabulary"]["md5"]):
        raise ShardError(
            f"{path}: md5 {found.md5}, expected {md5}, the vocabulary that {shard} was made with"
        )
    return found


def _read_manifest(shard: str) -> dict[str, Any] | None:
    """Read the manifest next to the shard. Return its JSON, converted to the latest version of manifests.

    Returns None if there is no manifest, or if it does not list the shard.
    """
    path = storage.join(storage.get_parent(shard), MANIFEST_NAME)
    if not storage.exists(path):
        return None
    value = parse_json(storage.read_bytes(path), path)
    if value.get("kind") != "dataset":
        return None
    value = parse_dataset_json(storage.read_bytes(path), path).value
    names = {INDEX_NAME, *(entry["name"] for entry in value["shards"])}
    return value if storage.get_base_name(shard) in names else None
