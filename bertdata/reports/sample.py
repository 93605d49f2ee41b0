"""A sample of a dataset: the first examples of some shards, which are evenly spaced among all shards."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bertdata.dataset.discover import FoundDataset, FoundShard
from bertdata.errors import ShardError
from bertdata.examples.objectives import find_objective
from bertdata.records import ExampleBatch, ShardLayout, Vocabulary
from bertdata.reports.sampled_tokens import SampledTokens
from bertdata.reports.shard_counts import ShardCounts
from bertdata.shards.containers import open_reader
from bertdata.shards.packed.packs import (
    PackBatch,
    PackReader,
    convert_packs_to_arrays,
    slice_packs,
    unpack_layout,
)

_MOST_SHARDS = 64
_BATCH = 256
_MOST_KEPT = 200


class KeptExample(NamedTuple):
    """An example that the report shows in full.

    title: the name of the shard, and the number of the example in it.
    """

    title: str
    example: Any
    batch_type: type[ExampleBatch]
    layout: ShardLayout


@dataclass(kw_only=True)
class DatasetSample:
    """Counts over a sample of examples, and some of these examples in full.

    shards_read: number of shards that the examples come from.
    per_shard: largest number of examples that are read from a shard.
    counts: counts over the sampled examples of each shard.
    tokens: counts of tokens and words.
    kept: the examples to show.
    faults: error messages about shards that could not be read.
    is_all: True if every example of the dataset was read.
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
        """Number of examples in the sample."""
        return sum(shard.examples for shard in self.counts)


def read_sample(
    dataset: FoundDataset, most: int, vocab: str | None = None, vocabulary: Vocabulary | None = None
) -> DatasetSample:
    """Read about ``most`` examples of a dataset.

    If a shard cannot be read, its error is added to the sample's faults.

    vocab: vocabulary file for shards that contain words instead of ids.
    vocabulary: vocabulary by which words are counted. None counts no words.
    """
    filled = [shard for shard in dataset.shards if shard.bytes]
    # If there are many shards, read only evenly spaced ones. For example, 64 of 200 shards are the shards 0,
    # 3, 6, 9, 12, ...
    chosen = filled
    if len(filled) > _MOST_SHARDS:
        chosen = [filled[place * len(filled) // _MOST_SHARDS] for place in range(_MOST_SHARDS)]
    quota = -(-most // max(len(chosen), 1))
    # A dataset with no more than ``most`` examples is read completely.
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
    """Count the first examples of a shard, and keep some of them to be shown.

    Return True if the sample then contains all examples of the shard.

    quota: number of examples to count.
    kept: number of examples to keep.
    """
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
        for batch in _read_first_batches(reader, quota, counts):
            counts.add(batch)
            sample.tokens.add(batch)
            # Keep those examples of this batch that are among the first ``kept`` examples of the shard.
            left = kept - counts.examples + len(batch)
            sample.kept += _list_kept_examples(
                shard, batch, counts.examples - len(batch), left, reader.layout
            )
        sample.counts.append(counts)
        return counts.examples < quota or (
            shard.entry is not None and counts.examples == shard.entry.examples
        )


def _read_first_batches(reader: Any, quota: int, counts: ShardCounts) -> Iterator[ExampleBatch]:
    """Yield the first ``quota`` examples of a shard as arrays.

    Packed rows are read as a whole, so there may be a few more examples.
    """
    from bertdata.examples.columns import convert_to_arrays, slice_batch

    left = quota
    if isinstance(reader, PackReader):
        for packs in reader.packs(_BATCH):
            packs = _cut_rows(convert_packs_to_arrays(packs), left)
            counts.packs.update(_count_examples_by_row(packs))
            yield packs.examples
            left -= len(packs.examples)
            if left <= 0:
                return
        return
    for batch in reader.batches(_BATCH):
        yield slice_batch(convert_to_arrays(batch), 0, min(left, len(batch)))
        left -= len(batch)
        if left <= 0:
            return


def _cut_rows(packs: PackBatch, examples: int) -> PackBatch:
    """Return the first packed rows, as few as contain at least this many examples."""
    rows = int((packs.ends < examples).sum()) + 1
    return slice_packs(packs, 0, min(rows, len(packs)))


def _count_examples_by_row(packs: PackBatch) -> list[int]:
    """Return the number of examples in each row."""
    from bertdata.examples.columns import compute_lengths

    found: list[int] = compute_lengths(packs.ends).tolist()
    return found


def _list_kept_examples(
    shard: FoundShard, batch: ExampleBatch, first: int, most: int, layout: ShardLayout
) -> Iterator[KeptExample]:
    """Yield the first ``most`` examples of a batch, to be shown in full.

    first: number of the batch's first example in its shard.
    """
    if most <= 0:
        return
    from bertdata.examples.columns import slice_batch

    chosen = slice_batch(batch, 0, min(most, len(batch)))
    for number, example in enumerate(chosen.examples(), first):
        yield KeptExample(f"{shard.name}, example {number}", example, type(batch), unpack_layout(layout))
