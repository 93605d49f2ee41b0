"""A sample of a dataset: examples from the start of shards that lie evenly among all of them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bertdata.dataset.discover import FoundDataset, FoundShard
from bertdata.errors import ShardError
from bertdata.examples.objectives import find_objective
from bertdata.records import ExampleBatch, ShardLayout, Vocabulary
from bertdata.report.sampled_tokens import SampledTokens
from bertdata.report.shard_counts import ShardCounts
from bertdata.shards.containers import open_reader
from bertdata.shards.packed.packs import PackBatch, PackReader, cut_packs, pack_arrays, unpacked

_MOST_SHARDS = 64
_BATCH = 256
_MOST_KEPT = 200


class KeptExample(NamedTuple):
    """An example to be shown, with its shard and number there."""

    title: str
    example: Any
    batch_type: type[ExampleBatch]
    layout: ShardLayout


@dataclass(kw_only=True)
class DatasetSample:
    """Counts over the sampled examples, some of them whole, and what could not be read.

    per_shard: the most examples that were taken of a shard. is_all: every example of the dataset was read.
    """

    shards_read: int
    per_shard: int
    counts: list[ShardCounts] = field(default_factory=list)
    tokens: SampledTokens
    kept: list[KeptExample] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    is_all: bool = False

    @property
    def examples(self) -> int:
        return sum(shard.examples for shard in self.counts)


def read_sample(
    dataset: FoundDataset, most: int, vocab: str | None = None, vocabulary: Vocabulary | None = None
) -> DatasetSample:
    """About ``most`` examples of the dataset. A shard that cannot be read is a fault of the sample's."""
    filled = [shard for shard in dataset.shards if shard.bytes]
    chosen = filled
    if len(filled) > _MOST_SHARDS:
        chosen = [filled[place * len(filled) // _MOST_SHARDS] for place in range(_MOST_SHARDS)]
    quota = -(-most // max(len(chosen), 1))
    if dataset.manifest is not None and sum(shard.examples for shard in dataset.manifest.shards) <= most:
        chosen, quota = filled, most
    sample = DatasetSample(shards_read=len(chosen), per_shard=quota, tokens=SampledTokens(vocabulary))
    sample.is_all = len(chosen) == len(filled)
    kept_of_each = -(-_MOST_KEPT // max(len(chosen), 1))
    for shard in chosen:
        try:
            sample.is_all &= _read_shard(sample, shard, quota, kept_of_each, vocab)
        except ShardError as error:
            sample.faults.append(str(error))
            sample.is_all = False
    return sample


def _read_shard(sample: DatasetSample, shard: FoundShard, quota: int, kept: int, vocab: str | None) -> bool:
    """Count the shard's first examples. True where they are all of it."""
    with open_reader(
        shard.path, objective=shard.objective, vocabulary=vocab, padding_id=shard.padding_id
    ) as reader:
        own = find_objective(reader.layout.objective).counts()
        counts = ShardCounts(
            name=shard.name,
            bytes=shard.bytes,
            layout=reader.layout,
            is_measured=reader.is_measured,
            own=own,
        )
        for batch in _first_batches(reader, quota, counts):
            counts.add(batch)
            sample.tokens.add(batch)
            left = kept - counts.examples + len(batch)
            sample.kept += _kept(shard, batch, counts.examples - len(batch), left, reader.layout)
        sample.counts.append(counts)
        return counts.examples < quota or (
            shard.entry is not None and counts.examples == shard.entry.examples
        )


def _first_batches(reader: Any, quota: int, counts: ShardCounts) -> Iterator[ExampleBatch]:
    """The reader's first examples as arrays, of packed rows those of whole rows."""
    from bertdata.examples.columns import arrays, cut

    left = quota
    if isinstance(reader, PackReader):
        for packs in reader.packs(_BATCH):
            packs = _cut_rows(pack_arrays(packs), left)
            counts.packs.update(_sizes(packs))
            yield packs.examples
            left -= len(packs.examples)
            if left <= 0:
                return
        return
    for batch in reader.batches(_BATCH):
        yield cut(arrays(batch), 0, min(left, len(batch)))
        left -= len(batch)
        if left <= 0:
            return


def _cut_rows(packs: PackBatch, examples: int) -> PackBatch:
    """The first rows that hold at least so many examples."""
    rows = int((packs.ends < examples).sum()) + 1
    return cut_packs(packs, 0, min(rows, len(packs)))


def _sizes(packs: PackBatch) -> list[int]:
    from bertdata.examples.columns import lengths

    found: list[int] = lengths(packs.ends).tolist()
    return found


def _kept(
    shard: FoundShard, batch: ExampleBatch, first: int, most: int, layout: ShardLayout
) -> Iterator[KeptExample]:
    if most <= 0:
        return
    from bertdata.examples.columns import cut

    chosen = cut(batch, 0, min(most, len(batch)))
    for number, example in enumerate(chosen.examples(), first):
        yield KeptExample(f"{shard.name}, example {number}", example, type(batch), unpacked(layout))
