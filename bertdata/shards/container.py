"""Base class of the containers. A container is a file format for examples.

Each container is a subclass. ``bertdata.shards.containers.CONTAINERS`` lists all of them by name.
"""

import re
from dataclasses import dataclass
from typing import BinaryIO, ClassVar

from bertdata._native import Engine
from bertdata.examples.objective import Objective
from bertdata.io.outputs import OutputFormat
from bertdata.records import ExampleBatch, ShardLayout
from bertdata.shards.protocol import ShardReader, ShardWriter, Sink


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadRequest:
    """Facts about a shard to be read that the caller knows, but that the file itself may not say.

    name: path of the shard, for errors and to find files next to it.
    engine: the C++ kernel or its pure-Python version. None means the kernel if it is available.
    objective: the examples' objective. None takes the objective that the file names.
    vocabulary: path or name of the vocabulary for LDDL's words. None means the vocabulary file next to the
        shard.
    padding_id: id at padded positions of a TFRecord. None takes it from the first record.
    layout: layout of the shard's dataset. None if it is unknown.
    ids_type: integer type of the ids in an MDS shard that stores them as plain bytes, which do not show it.
    """

    name: str
    engine: Engine | None = None
    objective: Objective | None = None
    vocabulary: str | None = None
    padding_id: int | None = None
    layout: ShardLayout | None = None
    ids_type: str | None = None


class Container:
    """A file format for examples. It recognises its files, and makes writers and readers for them.

    Modules that need an optional package are imported only inside the methods.
    """

    name: ClassVar[str]
    """Name of the container in manifests and for --format. It is also the file name ending of new files."""

    form: ClassVar[OutputFormat]
    """Description of a file of this container as output, for the command-line tools. Only containers that
    ``create`` writes have it.
    """

    ending: ClassVar[str] = ""
    """Regular expression for the endings of file names. If it is empty, the only ending is ``name``."""

    first_bytes: ClassVar[tuple[bytes, ...]] = ()
    """Byte sequences with which files of this container begin. A file may have any of them."""

    is_recognised_by_name: ClassVar[bool] = False
    """True if the file name's ending alone decides that a file belongs to this container, without its first
    bytes.
    """

    is_found_in_directories: ClassVar[bool] = True
    """True if a directory without a manifest is searched for files with an ending of this container."""

    is_canonical: ClassVar[bool] = False
    """True if the md5 of a file is the same as the content md5 of its examples."""

    has_single_rows: ClassVar[bool] = False
    """True if the bytes of an example can be read from a file without those of other examples
    (``ShardReader.find_row_offsets``), unless rows are packed.
    """

    holds_word_starts: ClassVar[bool] = True
    """False if examples without masks cannot store in this container where words start."""

    def matches_name(self, path: str) -> bool:
        """Return True if the file name has an ending of this container."""
        ending = path.rsplit(".", 1)[-1].lower()
        return re.fullmatch(self.ending or re.escape(self.name), ending) is not None

    def check_examples(self, batch_type: type[ExampleBatch], objective: str, *, has_masks: bool) -> None:
        """Raise SettingsError if the container cannot hold examples of this type.

        objective: the objective's name, for the message.
        has_masks: True if masks are already applied to the examples.
        """

    def make_writer(self, sink: Sink, layout: ShardLayout, engine: Engine | None, name: str) -> ShardWriter:
        """Return an object that writes examples to a shard.

        sink: receives the shard's bytes.
        name: the shard, for errors.
        """
        raise NotImplementedError(f"{self.name}: is written by convert alone")

    def make_reader(self, file: BinaryIO, known: ReadRequest) -> ShardReader:
        """Return an object that reads examples from a shard whose rows are not packed."""
        raise NotImplementedError(f"{self.name}: is read as another container")
