"""The stages of ``--shuffle global``: parts to sorted documents, dealt out to shards over the whole corpus.

Elements are the documents of a whole part, or those of one part for one shard.
"""

import logging
import time
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import apache_beam as beam

from beam_pipelines.report.counters import count, spread
from beam_pipelines.report.errors import naming
from beam_pipelines.stages.shards import (
    ONE_AT_A_TIME,
    NumberedEntry,
    input_amounts,
    input_values,
    shard_amounts,
    shard_values,
)
from beam_pipelines.transport.spill_files import Parcel, ParcelRoom, collect, part_of
from bertdata.build.shuffle.cuts import count_tokens, deal_out, find_cuts
from bertdata.build.shuffle.part import sort_part
from bertdata.build.task import TaskPlan, run_task
from bertdata.dataset.manifest import InputEntry, SkippedEntry, corpus_entry
from bertdata.dataset.writer import refuse_nothing
from bertdata.records import Buffer

_LOGGER = logging.getLogger(__name__)

Histogram = dict[int, int]


@dataclass(frozen=True, slots=True)
class Weight:
    """Tokens by key prefix of some inputs, and what the manifest says of these."""

    histogram: Histogram
    inputs: list[InputEntry | SkippedEntry]


@dataclass(frozen=True, kw_only=True, slots=True)
class Shuffle:
    """What every stage of the shuffle needs to know."""

    shards: int
    tasks: TaskPlan
    room: ParcelRoom


@dataclass(frozen=True, kw_only=True, slots=True)
class ShufflePlan:
    """What every shard's maker needs once all parts were read: where shards begin, all inputs as one."""

    cuts: Buffer
    corpus: InputEntry


class MakeShuffledShards(beam.PTransform):  # type: ignore[misc]
    """Paths of parts to (number of the target, entry) of each input and each shard; the shards are written.

    ::

        "results/part-00000-of-00500" -> (0, InputEntry(...)), (0, ShardEntry(...)), ...
    """

    def __init__(self, shuffle: Shuffle) -> None:
        super().__init__()
        self._shuffle = shuffle

    def expand(self, parts: beam.PCollection[str]) -> beam.PCollection[NumberedEntry]:
        documents = (
            parts
            | "spread over workers" >> beam.Reshuffle()
            | "tokenize parts" >> beam.ParDo(SortPart(self._shuffle)).with_outputs("weights", main="sorted")
        )
        corpus = documents.weights | "weigh the corpus" >> beam.CombinePerKey(Weigh())
        plan = corpus | "find cuts" >> beam.Map(plan_shuffle, self._shuffle.shards)
        once = beam.pvalue.AsSingleton(plan)
        shards = (
            documents.sorted
            | "deal out documents" >> beam.ParDo(DealOut(self._shuffle.shards), once)
            | "gather shards" >> beam.GroupByKey()
            | "make shards" >> beam.ParDo(MakeShuffledShard(self._shuffle), once)
        )
        inputs = corpus | "list inputs" >> beam.FlatMap(input_entries, len(self._shuffle.tasks.targets))
        return (shards, inputs) | "entries" >> beam.Flatten()


class SortPart(beam.DoFn):  # type: ignore[misc]
    """A part's path to parcels of its sorted documents and of their index; tagged: what it weighs."""

    def __init__(self, shuffle: Shuffle) -> None:
        self._shuffle = shuffle

    def setup(self) -> None:
        self._shuffle.tasks.load()

    def process(self, part: str) -> Iterator[Any]:
        with naming(part), ONE_AT_A_TIME:
            start = time.monotonic()
            found = sort_part(self._shuffle.tasks, part)
            seconds = time.monotonic() - start
        for warning in found.warnings:
            _LOGGER.warning("%s", warning)
        weights: Histogram = {}
        if (documents := found.documents) is not None:
            index = documents.prefixes.tobytes() + documents.starts.tobytes()
            yield tuple(self._shuffle.room.leave([documents.records, index]))
            weights = count_tokens(documents.prefixes, documents.tokens, self._shuffle.shards)
        count(input_amounts(found.entry))
        spread(input_values(found.entry, seconds))
        yield beam.pvalue.TaggedOutput("weights", (0, Weight(weights, [found.entry])))


class Weigh(beam.CombineFn):  # type: ignore[misc]
    """Adds up weights."""

    def create_accumulator(self) -> Weight:
        return Weight({}, [])

    def add_input(self, sum: Weight, part: Weight) -> Weight:
        for prefix, tokens in part.histogram.items():
            sum.histogram[prefix] = sum.histogram.get(prefix, 0) + tokens
        sum.inputs.extend(part.inputs)
        return sum

    def merge_accumulators(self, sums: Iterable[Weight]) -> Weight:
        return reduce(self.add_input, sums, self.create_accumulator())

    def extract_output(self, sum: Weight) -> Weight:
        return sum


def plan_shuffle(weighed: tuple[int, Weight], shards: int) -> ShufflePlan:
    """The plan, from the corpus' weight, whose inputs may come in any order."""
    weight = weighed[1]
    read = [entry for entry in weight.inputs if isinstance(entry, InputEntry)]
    skipped = [entry for entry in weight.inputs if isinstance(entry, SkippedEntry)]
    if not read:
        refuse_nothing(skipped)
    return ShufflePlan(
        cuts=find_cuts(weight.histogram, shards),
        corpus=corpus_entry(read, skipped),
    )


def input_entries(weighed: tuple[int, Weight], targets: int) -> Iterator[NumberedEntry]:
    """Each input's entry for each dataset."""
    for number in range(targets):
        for entry in weighed[1].inputs:
            yield number, entry


class DealOut(beam.DoFn):  # type: ignore[misc]
    """Parcels of a part's documents and of their index to (number of a shard, the documents for it)."""

    def __init__(self, shards: int) -> None:
        self._shards = shards

    def process(self, part: tuple[Parcel, Parcel], plan: ShufflePlan) -> Iterator[tuple[int, Parcel]]:
        records, packed = part
        index = array("Q", collect(packed))
        prefixes, starts = index[: len(index) // 2], index[len(index) // 2 :]
        size = len(records) if isinstance(records, bytes) else records.length
        for shard, start, stop in deal_out(prefixes, starts, size, plan.cuts, self._shards):
            yield shard, part_of(records, start, stop)


class MakeShuffledShard(beam.DoFn):  # type: ignore[misc]
    """(Number of a shard, its documents) to (number of the target, entry); calls ``run_task``."""

    def __init__(self, shuffle: Shuffle) -> None:
        self._shuffle = shuffle

    def process(self, gathered: tuple[int, Iterable[Parcel]], plan: ShufflePlan) -> Iterator[NumberedEntry]:
        number, parcels = gathered
        task = self._shuffle.tasks.shuffled(
            number, self._shuffle.shards, plan.corpus, partial(map, collect, parcels)
        )
        with naming(f"shard {number}"), ONE_AT_A_TIME:
            result = run_task(task)
        shards = [shard for _, shard in result.entries]
        count(shard_amounts(shards, result.kept))
        spread(shard_values(shards))
        yield from enumerate(shards)
