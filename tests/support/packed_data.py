"""In-memory datasets of packed rows, for tests of the trainer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate

import numpy as np

from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.examples import columns
from bertdata.records import ExampleBatch
from bertdata.shards.packed.packs import PackBatch


@dataclass(frozen=True, kw_only=True, slots=True)
class PackedData(OpenedDataset):
    """Another dataset's examples in the same order, packed: each row holds as many as fit."""

    source: OpenedDataset
    ends: dict[str, list[int]]  # by shard name: for each row, the number of the example after it

    @property
    def has_lengths(self) -> bool:
        return self.source.has_lengths

    def lengths(self, shard: Shard) -> object:
        return self.source.lengths(shard)

    def batches(self, shard: Shard) -> Iterator[ExampleBatch]:
        return self.source.batches(shard)

    def packs(self, shard: Shard) -> Iterator[PackBatch]:
        examples = columns.join_batches(list(self.source.batches(shard)))
        ends = self.ends[shard.name]
        half = len(ends) // 2  # two batches, so that joining them is seen
        middle = ends[half - 1] if half else 0
        yield PackBatch(
            examples=columns.slice_batch(examples, 0, middle), ends=np.array(ends[:half], np.uint32)
        )
        rest = np.array(ends[half:], np.uint32) - np.uint32(middle)
        yield PackBatch(examples=columns.slice_batch(examples, middle, len(examples)), ends=rest)


def pack_in_turn(source: OpenedDataset, most: int = 3) -> PackedData:
    """Pack a dataset: an example joins the row of the example before it if it fits.

    most: examples per row.
    """
    ends, shards = {}, []
    for shard in source.shards:
        examples = columns.join_batches(list(source.batches(shard)))
        sizes = _pack(columns.compute_lengths(examples.ends).tolist(), source.layout.max_seq_length, most)
        ends[shard.name] = list(accumulate(sizes))
        shards.append(replace(shard, rows=len(sizes)))
    layout = replace(source.layout, packing="flat", sequences_per_row=most)
    given = {field.name: getattr(source, field.name) for field in fields(OpenedDataset)}
    return PackedData(**given | {"layout": layout, "shards": tuple(shards)}, source=source, ends=ends)


def _pack(lengths: Sequence[int], room: int, most: int) -> list[int]:
    """Return the number of examples in each row. room: tokens in a row. most: examples in a row."""
    sizes, left = list[int](), 0
    for length in lengths:
        if length > left or sizes[-1] == most:
            sizes.append(0)
            left = room
        sizes[-1] += 1
        left -= length
    return sizes
