"""Writer and reader of example batches, as every container offers them."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from bertdata.records import ExampleBatch, ShardLayout

_BATCH = 512


class Sink(Protocol):
    """Destination of a writer's bytes, in order. Never sought."""

    def write(self, data: bytes | memoryview, /) -> object: ...


class ShardWriter(Protocol):
    """Encodes batches into one container.

    ``close`` finishes the container but leaves the sink open; nothing is complete before it.
    """

    def write(self, batch: ExampleBatch) -> None: ...

    def close(self) -> None: ...


class ShardReader(Protocol):
    """Decodes one container. ShardError names the file and the record that cannot be read."""

    layout: ShardLayout
    index: Any = None  # of the file, as ``piece`` needs it: found once, and of use to its next reader

    is_measured: bool = False
    """True where the container does not tell the layout's sizes: they are the largest of its examples."""

    def __len__(self) -> int: ...

    def batches(self, size: int) -> Iterator[ExampleBatch]:
        """All examples in order, at most ``size`` at a time."""
        ...

    def piece_ends(self) -> Sequence[int] | None:
        """The ends of the runs of examples that ``piece`` decodes alone. None: it cannot."""
        return None

    def piece(self, number: int) -> ExampleBatch:
        """The examples of one such run."""
        raise AssertionError("no run of examples is decoded alone")

    def __iter__(self) -> Iterator[Any]:
        """Each example by itself, in order, as the ``example_type`` of its objective."""
        for batch in self.batches(_BATCH):
            yield from batch.examples()
