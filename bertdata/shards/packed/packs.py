"""Batches of packed rows, and the protocol of their writers and readers."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from bertdata.records import Buffer, ExampleBatch
from bertdata.shards.protocol import ShardReader


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PackBatch:
    """N packed rows: row i holds the examples ``ends[i-1]`` to ``ends[i]``, left to right.

    examples: unpacked, without padding; positions and first lengths count from each example's own start.
    """

    examples: ExampleBatch
    ends: Buffer  # uint32

    def __len__(self) -> int:
        return len(self.ends)


class PackWriter(Protocol):
    """Encodes packed rows into one container; ``close`` finishes it but leaves the sink open.

    ShardError names a row that the layout cannot hold: too many ids, examples or masks.
    """

    def write(self, packs: PackBatch) -> None: ...

    def close(self) -> None: ...


class PackReader(ShardReader):
    """Decodes a shard of packed rows; as a ShardReader it gives their examples, row after row.

    ``len`` is the number of examples, ``rows`` that of packed rows. ShardError names the file and the row
    that cannot be read.
    """

    rows: int

    @abstractmethod
    def packs(self, size: int) -> Iterator[PackBatch]:
        """All rows in order, at most ``size`` at a time."""

    def batches(self, size: int) -> Iterator[ExampleBatch]:
        from bertdata.examples.columns import arrays, regroup

        return regroup((arrays(packs.examples) for packs in self.packs(size)), size)
