"""The interfaces of shard writers and readers, which every container implements."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from bertdata.records import ExampleBatch, ShardLayout

_BATCH = 512


class Sink(Protocol):
    """Destination for a writer's bytes, which arrive in order. A writer never seeks."""

    def write(self, data: bytes | memoryview, /) -> object: ...


class ShardWriter(Protocol):
    """Interface of a writer of examples to a container.

    ``close`` completes the file but leaves the sink open. Without a call of ``close`` the file is unusable.
    """

    def write(self, batch: ExampleBatch) -> None: ...

    def close(self) -> None: ...


class ShardReader(Protocol):
    """Interface of a reader of a shard. ShardError names the file and the record that cannot be read.

    layout: objective and largest sizes of the examples.
    """

    layout: ShardLayout
    index: Any = (
        None  # set by find_piece_ends, so that a later reader of the same file need not compute it again
    )

    is_measured: bool = False
    """True if the file does not store the layout's sizes, so that they were measured from its examples."""

    def __len__(self) -> int: ...

    def batches(self, size: int) -> Iterator[ExampleBatch]:
        """Yield all examples in order, in batches of at most ``size``."""
        ...

    def find_piece_ends(self) -> Sequence[int] | None:
        """Return the number of examples up to the end of each piece.

        A piece is a run of consecutive examples that can be decoded without the rest of the file. None if the
        file can only be read in order.
        """
        return None

    def read_piece(self, number: int) -> ExampleBatch:
        """Return the examples of piece ``number``. A piece is a run of consecutive examples."""
        raise AssertionError("no run of examples is decoded alone")

    def __iter__(self) -> Iterator[Any]:
        """Yield each example in order, as the ``example_type`` of its objective."""
        for batch in self.batches(_BATCH):
            yield from batch.examples()
