"""What one shard holds, counted: all that statistics need, small enough to send between processes."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain, compress, repeat
from operator import add, eq, sub

from bertdata._native import Engine
from bertdata.records import Buffer, ExampleBatch, ShardLayout
from bertdata.shards.containers import open_reader

_BATCH = 512


@dataclass(kw_only=True, slots=True)
class ShardCounts:
    """Counts over the examples of one shard.

    lengths, masks: examples by their number of real tokens, and of masked positions. shown: masked
    positions by the id that stands there; kept: those of them where it is the original. With these
    two, masks can be told apart for any id of [MASK] after the counting. first_tokens: real tokens of
    segment A, ``[CLS]`` and the first ``[SEP]`` included. layout is None for a shard without records.
    """

    name: str
    bytes: int
    layout: ShardLayout | None
    lengths: Counter[int] = field(default_factory=Counter)
    masks: Counter[int] = field(default_factory=Counter)
    shown: Counter[int] = field(default_factory=Counter)
    kept: Counter[int] = field(default_factory=Counter)
    first_tokens: int = 0
    random_next: int = 0

    @property
    def examples(self) -> int:
        return self.lengths.total()

    @property
    def tokens(self) -> int:
        """Real (not padded) positions."""
        return weighted_sum(self.lengths)

    @property
    def masked_tokens(self) -> int:
        return self.shown.total()

    def add(self, batch: ExampleBatch) -> None:
        """Count the batch's examples: whole columns at a time, never one example by one."""
        ends, mask_ends = _plain(batch.ends), _plain(batch.mask_ends)
        masks = _sizes(mask_ends)
        starts = chain.from_iterable(map(repeat, [0, *ends[:-1]], masks))
        shown = list(map(memoryview(batch.ids).__getitem__, map(add, starts, _plain(batch.positions))))
        self.lengths.update(_sizes(ends))
        self.masks.update(masks)
        self.shown.update(shown)
        self.kept.update(compress(shown, map(eq, shown, _plain(batch.labels))))
        self.first_tokens += sum(_plain(batch.first_lengths))
        self.random_next += sum(_plain(batch.next_labels))


def count_shard(path: str, name: str, shard_bytes: int, engine: Engine | None = None) -> ShardCounts:
    """The counts of the shard at the path, every record of it read; ShardError as from its reader."""
    with open_reader(path, engine) as reader:
        counts = ShardCounts(name=name, bytes=shard_bytes, layout=reader.layout)
        for batch in reader.batches(_BATCH):
            counts.add(batch)
    return counts


def merged(counters: Iterable[Counter[int]]) -> Counter[int]:
    """All of them added up."""
    total: Counter[int] = Counter()
    for counter in counters:
        total.update(counter)
    return total


def weighted_sum(counter: Counter[int]) -> int:
    """The sum of what was counted: each number as often as it came."""
    return sum(number * count for number, count in counter.items())


def _plain(column: Buffer) -> list[int]:
    """A column as Python's own integers, whatever kind of buffer it is."""
    values: list[int] = column.tolist()
    return values


def _sizes(ends: list[int]) -> list[int]:
    return list(map(sub, ends, [0, *ends[:-1]]))
