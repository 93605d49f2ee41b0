"""Counts over the examples of one shard, from which statistics are computed.

They are small enough to be sent between processes.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from bertdata._native import Engine
from bertdata.examples.counting import compute_sizes, convert_to_ints, sum_weighted
from bertdata.examples.groups import count_masks
from bertdata.examples.objective import ObjectiveCounts
from bertdata.examples.objectives import find_objective
from bertdata.records import ExampleBatch, ShardLayout
from bertdata.shards.containers import open_reader
from bertdata.shards.packed.packs import PackReader

_BATCH = 512


@dataclass(kw_only=True, slots=True)
class ShardCounts:
    """Counts over the examples of one shard.

    layout: sizes and settings of the records. None if the shard has no records.
    is_measured: True if the file does not state the sizes in ``layout``. They are then the largest sizes in
        its examples.
    lengths: number of examples, by length in tokens without padding.
    own: further counts, which the objective of the examples defines.
    packs: number of packed rows, by their number of sequences. Empty if the examples are not packed.
    masked_tokens: number of masked positions.
    """

    name: str
    bytes: int
    layout: ShardLayout | None
    is_measured: bool = False
    lengths: Counter[int] = field(default_factory=Counter)
    own: ObjectiveCounts = field(default_factory=ObjectiveCounts)
    packs: Counter[int] = field(default_factory=Counter)
    masked_tokens: int = 0

    @property
    def examples(self) -> int:
        """Number of examples."""
        return self.lengths.total()

    @property
    def tokens(self) -> int:
        """Number of tokens without padding."""
        return sum_weighted(self.lengths)

    @property
    def rows(self) -> int | None:
        """Number of packed rows.

        It is None if each row is a single example.
        """
        return self.packs.total() if self.layout and self.layout.packing else None

    def add(self, batch: ExampleBatch) -> None:
        """Count the examples of a batch."""
        self.lengths.update(compute_sizes(convert_to_ints(batch.ends)))
        self.masked_tokens += count_masks(batch)
        self.own.add(batch)


def count_shard(
    path: str,
    name: str,
    shard_bytes: int,
    engine: Engine | None = None,
    objective: str | None = None,
    padding_id: int | None = None,
) -> ShardCounts:
    """Read every record of a shard and return its counts. Raises ShardError if the shard is damaged."""
    with open_reader(path, engine, objective, padding_id=padding_id) as reader:
        own = find_objective(reader.layout.objective).counts()
        counts = ShardCounts(
            name=name, bytes=shard_bytes, layout=reader.layout, is_measured=reader.is_measured, own=own
        )
        if isinstance(reader, PackReader):
            for packs in reader.packs(_BATCH):
                counts.add(packs.examples)
                counts.packs.update(compute_sizes(convert_to_ints(packs.ends)))
        else:
            for batch in reader.batches(_BATCH):
                counts.add(batch)
    return counts


def sum_counters(counters: Iterable[Counter[int]]) -> Counter[int]:
    """Return the sum of the counters."""
    total: Counter[int] = Counter()
    for counter in counters:
        total.update(counter)
    return total
