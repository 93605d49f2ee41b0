"""Base class of the containers of examples. Each container is a subclass and a row of CONTAINERS."""

import re
from dataclasses import dataclass
from typing import BinaryIO, ClassVar

from bertdata._native import Engine
from bertdata.examples.objective import Objective
from bertdata.io.outputs import OutputForm
from bertdata.records import ExampleBatch, ShardLayout
from bertdata.shards.protocol import ShardReader, ShardWriter, Sink


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadRequest:
    """Facts for reading a shard that its bytes do not hold.

    name: in errors, and the place of the files beside it. padding_id: the id in the empty places of a
    TFRecord, else that of the first record. layout: that of the shard's dataset. vocabulary: path or name of
    that which LDDL's words need; None: vocab.txt beside the shard. ids_type: of the ids in an MDS column of
    bytes.
    """

    name: str
    engine: Engine | None = None
    objective: Objective | None = None
    vocabulary: str | None = None
    padding_id: int | None = None
    layout: ShardLayout | None = None
    ids_type: str | None = None


class Container:
    """A container of examples: how its files are known, what it holds, its writer and its reader.

    Modules that need a package of an extra are imported by its methods alone.
    """

    name: ClassVar[str]
    """Name in manifests and in --format, and ending of new files."""

    form: ClassVar[OutputForm]
    """Output kind of its files, for containers that ``create`` writes."""

    ending: ClassVar[str] = ""
    """Regular expression of the endings of file names. Empty: as ``name``."""

    first_bytes: ClassVar[tuple[bytes, ...]] = ()
    """First bytes that mark a file of this container."""

    is_told_by_name: ClassVar[bool] = False
    """True where the name of a file decides, before its first bytes."""

    is_looked_for: ClassVar[bool] = True
    """True where a file of such a name in a directory without a manifest is taken for a shard."""

    is_canonical: ClassVar[bool] = False
    """True where a file's md5 is the content md5 of its examples."""

    holds_word_starts: ClassVar[bool] = True
    """False where examples without masks are written without the words' starts."""

    def is_name(self, path: str) -> bool:
        """True for a file name that ends as one of this container."""
        ending = path.rsplit(".", 1)[-1].lower()
        return re.fullmatch(self.ending or re.escape(self.name), ending) is not None

    def check_examples(self, batch_type: type[ExampleBatch], objective: str, *, has_masks: bool) -> None:
        """SettingsError for examples that the container does not hold."""

    def make_writer(self, sink: Sink, layout: ShardLayout, engine: Engine | None, name: str) -> ShardWriter:
        """A writer of one shard, which errors call ``name``."""
        raise NotImplementedError(f"{self.name}: is written by convert alone")

    def make_reader(self, file: BinaryIO, known: ReadRequest) -> ShardReader:
        """A reader of one shard whose rows are not packed."""
        raise NotImplementedError(f"{self.name}: is read as another container")
