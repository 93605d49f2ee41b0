"""The interfaces of shard writers and readers, which every container implements."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from bertdata.records import ExampleBatch, ShardLayout

_BATCH = 512


class Sink(Protocol):
    """Interface of what receives the bytes of a written file, in order. Writers never seek in it."""

    def write(self, data: bytes | memoryview, /) -> object: ...


class ShardWriter(Protocol):
    """Interface of a writer of examples to a shard.

    ``close`` completes the file but does not close the sink. Without a call of ``close`` the file is
    unusable.
    """

    def write(self, batch: ExampleBatch) -> None: ...

    def close(self) -> None: ...


class ShardReader(Protocol):
    """Interface of a reader of a shard.

    Raises ShardError, which names the file and the record that cannot be read.

    layout: objective and largest sizes of the examples.
    index: what ``find_piece_ends`` found out about the file.
    """

    layout: ShardLayout
    # A later reader of the same file can get the index from the first one, instead of computing it again.
    index: Any = None

    is_measured: bool = False
    """True if the file does not store the sizes of its examples, so that they were measured by reading all
    examples.
    """

    def __len__(self) -> int: ...

    def batches(self, size: int) -> Iterator[ExampleBatch]:
        """Yield all examples in order, in batches of at most ``size``."""
        ...

    def find_piece_ends(self) -> Sequence[int] | None:
        """Return for each piece of the file the number of examples up to its end.

        A piece is a run of consecutive examples that can be decoded without the rest of the file. Returns
        None if the file can only be read in order.
        """
        return None

    def read_piece(self, number: int) -> ExampleBatch:
        """Return the examples of one piece, which is a run of consecutive examples.

        number: index of the piece.
        """
        raise AssertionError("no run of examples is decoded alone")

    def __iter__(self) -> Iterator[Any]:
        """Yield each example in order, as the ``example_type`` of its objective."""
        for batch in self.batches(_BATCH):
            yield from batch.examples()
