"""A sample of a dataset: the first examples of shards that are evenly spaced among all shards."""

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
from bertdata.shards.packed.packs import PackBatch, PackReader, cut_packs, pack_arrays, unpack_layout

_MOST_SHARDS = 64
_BATCH = 256
_MOST_KEPT = 200


class KeptExample(NamedTuple):
    """An example that the report shows in full.

    title: the shard's name and the example's number in the shard.
    """

    title: str
    example: Any
    batch_type: type[ExampleBatch]
    layout: ShardLayout


@dataclass(kw_only=True)
class DatasetSample:
    """Counts over the sampled examples, and some of these examples in full.

    shards_read: number of shards that the examples come from.
    per_shard: most examples read from a shard.
    counts: counts of each of these shards.
    tokens: counts of tokens and words.
    kept: examples to show.
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
    """Read about ``most`` examples of the dataset. A shard that cannot be read becomes a fault of the sample.

    vocab: vocabulary file for shards that hold words instead of ids.
    vocabulary: used to count words.
    """
    filled = [shard for shard in dataset.shards if shard.bytes]
    # If there are many shards, take evenly spaced shards. For 64 of 200 shards these are the shards 0, 3, 6,
    # 9, 12, ...
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
    """Count the first ``quota`` examples of a shard, and keep the first ``kept`` of them.

    Return True if the shard has no more than ``quota`` examples.
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
            # Of the first ``kept`` examples of the shard, take those that are in this batch.
            left = kept - counts.examples + len(batch)
            sample.kept += _list_kept_examples(
                shard, batch, counts.examples - len(batch), left, reader.layout
            )
        sample.counts.append(counts)
        return counts.examples < quota or (
            shard.entry is not None and counts.examples == shard.entry.examples
        )


def _read_first_batches(reader: Any, quota: int, counts: ShardCounts) -> Iterator[ExampleBatch]:
    """Yield the reader's first examples as arrays.

    Packed rows are read whole, so there may be a few more examples than ``quota``.
    """
    from bertdata.examples.columns import convert_to_arrays, slice_batch

    left = quota
    if isinstance(reader, PackReader):
        for packs in reader.packs(_BATCH):
            packs = _cut_rows(pack_arrays(packs), left)
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
    """Return the fewest first rows that hold at least this many examples."""
    rows = int((packs.ends < examples).sum()) + 1
    return cut_packs(packs, 0, min(rows, len(packs)))


def _count_examples_by_row(packs: PackBatch) -> list[int]:
    """Return the number of examples in each row."""
    from bertdata.examples.columns import compute_lengths

    found: list[int] = compute_lengths(packs.ends).tolist()
    return found


def _list_kept_examples(
    shard: FoundShard, batch: ExampleBatch, first: int, most: int, layout: ShardLayout
) -> Iterator[KeptExample]:
    """Yield the first ``most`` examples of a batch in full.

    first: the number of the batch's first example in its shard.
    """
    if most <= 0:
        return
    from bertdata.examples.columns import slice_batch

    chosen = slice_batch(batch, 0, min(most, len(batch)))
    for number, example in enumerate(chosen.examples(), first):
        yield KeptExample(f"{shard.name}, example {number}", example, type(batch), unpack_layout(layout))
