"""Base class of the containers, which are file formats for examples.

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
    """What a caller knows about a shard that the file itself may not say.

    name: path of the shard, for errors and to find files next to it.
    padding_id: id at padded positions of a TFRecord. None to take it from the first record.
    layout: the layout of the shard's dataset, if known.
    vocabulary: path or name of the vocabulary for LDDL's words. None for vocab.txt next to the shard.
    ids_type: integer type of the ids if an MDS shard stores them as plain bytes, which do not record it.
    """

    name: str
    engine: Engine | None = None
    objective: Objective | None = None
    vocabulary: str | None = None
    padding_id: int | None = None
    layout: ShardLayout | None = None
    ids_type: str | None = None


class Container:
    """A file format for examples. It recognises its files and makes their writers and readers.

    Modules that need an optional package are imported only inside the methods.
    """

    name: ClassVar[str]
    """Name of the container in manifests and for --format. New files get it as their ending."""

    form: ClassVar[OutputFormat]
    """Type of output that a file of this container is, for containers that ``create`` writes."""

    ending: ClassVar[str] = ""
    """Regular expression for file name endings. Empty if the only ending is ``name``."""

    first_bytes: ClassVar[tuple[bytes, ...]] = ()
    """Byte sequences with which a file of this container may begin."""

    is_told_by_name: ClassVar[bool] = False
    """True if a file with an ending of this container always belongs to it, whatever its first bytes are."""

    is_looked_for: ClassVar[bool] = True
    """True if files with an ending of this container count as shards in a directory without a manifest."""

    is_canonical: ClassVar[bool] = False
    """True if the md5 of a file equals the content md5 of its examples."""

    holds_word_starts: ClassVar[bool] = True
    """False if the container has no place for the marks of word starts in examples without masks."""

    def is_name(self, path: str) -> bool:
        """Return True if the file name has an ending of this container."""
        ending = path.rsplit(".", 1)[-1].lower()
        return re.fullmatch(self.ending or re.escape(self.name), ending) is not None

    def check_examples(self, batch_type: type[ExampleBatch], objective: str, *, has_masks: bool) -> None:
        """Raise SettingsError if the container cannot hold these examples."""

    def make_writer(self, sink: Sink, layout: ShardLayout, engine: Engine | None, name: str) -> ShardWriter:
        """Return a writer for a shard. name: the shard, for errors."""
        raise NotImplementedError(f"{self.name}: is written by convert alone")

    def make_reader(self, file: BinaryIO, known: ReadRequest) -> ShardReader:
        """Return a reader for a shard whose rows are not packed."""
        raise NotImplementedError(f"{self.name}: is read as another container")
