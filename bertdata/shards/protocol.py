"""The interfaces of shard writers and readers, which every container implements."""

from collections.abc import Hashable, Iterator, Sequence
from typing import IO, Any, Protocol

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

    def find_row_offsets(self, first: int, count: int) -> Sequence[int] | None:
        """Return the byte offset of each of some consecutive examples, and the offset after the last one.

        If the file has fewer examples, there are fewer offsets. Returns None if examples cannot be read from
        the file one by one, for instance because the file stores columns. Several threads may call this
        method, unless they ask for the same examples.

        first: number of the first of these examples.
        count: number of examples.
        """
        return None

    @property
    def row_file(self) -> IO[bytes]:
        """The open file to which the offsets of ``find_row_offsets`` belong."""
        raise AssertionError("no example is read alone")

    @property
    def row_form(self) -> Hashable:
        """Everything that ``decode_rows`` has to know about the bytes of examples.

        Examples of files with the same form and layout can be decoded together.
        """
        return None

    def decode_rows(
        self, data: bytes | memoryview, sizes: Sequence[int], first: int = 0
    ) -> Iterator[ExampleBatch]:
        """Yield examples whose bytes lie one behind the other, in batches.

        They may come from several files with the same ``row_form`` and layout.

        sizes: number of bytes of each example.
        first: number of the first example in this file, for errors.
        """
        raise AssertionError("no example is decoded alone")

    def __iter__(self) -> Iterator[Any]:
        """Yield each example in order, as the ``example_type`` of its objective."""
        for batch in self.batches(_BATCH):
            yield from batch.examples()
