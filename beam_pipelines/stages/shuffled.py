"""Stages of the global shuffle (``--shuffle global``), which mixes the documents of the whole corpus.

Every document has a random key. The documents of each text part are sorted by key, then gathered into shards.
An element is all documents of a part, or the documents of a part that belong to one shard. The module
``bertdata.build.shuffle`` defines the keys, and the cuts, which are the keys at which the shards begin.
"""

import logging
import time
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import apache_beam as beam

from beam_pipelines.report.counters import add_to_counters, add_to_distributions
from beam_pipelines.report.errors import add_path_to_errors
from beam_pipelines.stages.shards import (
    ONE_AT_A_TIME,
    NumberedEntry,
    count_part,
    count_shards,
    list_largest_document,
    list_part_values,
    list_shard_values,
)
from beam_pipelines.transport.spill_files import SpillFiles, StageBytes, count_bytes, cut_value, read_value
from bertdata.build.shard_task import TaskPlan, run_task
from bertdata.build.shuffle.document_cuts import count_tokens, divide_part_into_shards, find_shard_cuts
from bertdata.build.shuffle.sorted_files import sort_part
from bertdata.dataset.manifest import InputEntry, SkippedEntry, make_corpus_entry
from bertdata.dataset.writer import raise_if_inputs_skipped
from bertdata.records import Buffer

_LOGGER = logging.getLogger(__name__)

Histogram = dict[int, int]


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Numbers of tokens in some text parts.

    histogram: number of tokens of the documents whose keys have the same first bits.
    inputs: the parts' entries for the manifest.
    """

    histogram: Histogram
    inputs: list[InputEntry | SkippedEntry]


@dataclass(frozen=True, kw_only=True, slots=True)
class ShuffleSettings:
    """The settings that all stages of the shuffle share.

    num_shards: number of shards to make.
    tasks: plan of the datasets, from which the tasks for single shards are made.
    spill_files: temporary files for values on their way to the next stage.
    """

    num_shards: int
    tasks: TaskPlan
    spill_files: SpillFiles


@dataclass(frozen=True, kw_only=True, slots=True)
class ShufflePlan:
    """The plan of the shards, which is known when all text parts have been read.

    cuts: the keys at which the shards begin.
    corpus: a single manifest entry for all parts together.
    """

    cuts: Buffer
    corpus: InputEntry


class MakeShuffledShards(beam.PTransform):  # type: ignore[misc]
    """Write the shards of the shuffled corpus.

    The outputs are the manifest entries of the text parts and of the shards, each with the number of its
    dataset. For a part in the first dataset::

        "results/part-00000-of-00500" -> (0, InputEntry(...)), (0, ShardEntry(...)), ...
    """

    def __init__(self, settings: ShuffleSettings) -> None:
        super().__init__()
        self._settings = settings

    def expand(self, parts: beam.PCollection[str]) -> beam.PCollection[NumberedEntry]:
        """Connect the stages from parts to manifest entries."""
        documents = (
            parts
            | "spread over workers" >> beam.Reshuffle()
            | "tokenize parts" >> beam.ParDo(SortPart(self._settings)).with_outputs("counts", main="sorted")
        )
        # The cuts between shards depend on the token counts of all parts. Each worker adds up the counts of
        # the parts that it sorts, so that little data reaches the single worker that finds the cuts.
        corpus = documents.counts | "add up token counts" >> beam.CombinePerKey(AddTokenCounts())
        plan = corpus | "find cuts" >> beam.Map(plan_shuffle, self._settings.num_shards)
        once = beam.pvalue.AsSingleton(plan)
        shards = (
            documents.sorted
            | "split parts by shard" >> beam.ParDo(SplitByShard(self._settings.num_shards), once)
            | "gather shards" >> beam.GroupByKey()
            | "make shards" >> beam.ParDo(MakeShuffledShard(self._settings), once)
        )
        inputs = corpus | "list inputs" >> beam.FlatMap(list_input_entries, len(self._settings.tasks.targets))
        return (shards, inputs) | "entries" >> beam.Flatten()


class SortPart(beam.DoFn):  # type: ignore[misc]
    """Tokenise the documents of a text part and sort them by their random keys.

    The main output is a pair: the sorted documents, and an index with their keys and places. Output "counts"
    has the number of tokens of the part, with the key 0, so that one worker gets the counts of all parts::

        "results/part-00000-of-00500" -> (documents, index)
        output "counts":                 (0, TokenCounts(...))
    """

    def __init__(self, settings: ShuffleSettings) -> None:
        self._settings = settings

    def setup(self) -> None:
        """Load the tokeniser once in each worker."""
        self._settings.tasks.load()

    def process(self, part: str) -> Iterator[Any]:
        """Sort the documents of one part."""
        with add_path_to_errors(part), ONE_AT_A_TIME:
            start = time.monotonic()
            found = sort_part(self._settings.tasks, part)
            seconds = time.monotonic() - start
        for warning in found.warnings:
            _LOGGER.warning("%s", warning)
        histogram: Histogram = {}
        if (documents := found.documents) is not None:
            index = documents.prefixes.tobytes() + documents.starts.tobytes()
            yield tuple(self._settings.spill_files.write([documents.records, index]))
            histogram = count_tokens(documents.prefixes, documents.tokens, self._settings.num_shards)
        add_to_counters(count_part(found.entry))
        add_to_distributions(list_part_values(found.entry, seconds))
        yield beam.pvalue.TaggedOutput("counts", (0, TokenCounts(histogram, [found.entry])))


class AddTokenCounts(beam.CombineFn):  # type: ignore[misc]
    """Add up the token counts of all text parts, first in each worker, then over all workers."""

    def create_accumulator(self) -> TokenCounts:
        return TokenCounts({}, [])

    def add_input(self, sum: TokenCounts, part: TokenCounts) -> TokenCounts:
        for prefix, tokens in part.histogram.items():
            sum.histogram[prefix] = sum.histogram.get(prefix, 0) + tokens
        sum.inputs.extend(part.inputs)
        return sum

    def merge_accumulators(self, sums: Iterable[TokenCounts]) -> TokenCounts:
        return reduce(self.add_input, sums, self.create_accumulator())

    def extract_output(self, sum: TokenCounts) -> TokenCounts:
        return sum


def plan_shuffle(corpus: tuple[int, TokenCounts], shards: int) -> ShufflePlan:
    """Plan the shards from the token counts of all text parts, so that they get nearly equal numbers of
    tokens.

    corpus: the key 0, and the counts of all parts, whose entries may be in any order.
    shards: number of shards.
    """
    counts = corpus[1]
    read = [entry for entry in counts.inputs if isinstance(entry, InputEntry)]
    skipped = [entry for entry in counts.inputs if isinstance(entry, SkippedEntry)]
    if not read:
        raise_if_inputs_skipped(skipped)
    return ShufflePlan(
        cuts=find_shard_cuts(counts.histogram, shards),
        corpus=make_corpus_entry(read, skipped),
    )


def list_input_entries(corpus: tuple[int, TokenCounts], targets: int) -> Iterator[NumberedEntry]:
    """Yield the manifest entry of each text part once for each dataset of the run, with the dataset's number.

    targets: number of datasets.
    """
    for number in range(targets):
        for entry in corpus[1].inputs:
            yield number, entry


class SplitByShard(beam.DoFn):  # type: ignore[misc]
    """Divide the sorted documents of a text part into those of each shard.

    The outputs are (shard number, documents).
    """

    def __init__(self, shards: int) -> None:
        self._shards = shards

    def process(
        self, part: tuple[StageBytes, StageBytes], plan: ShufflePlan
    ) -> Iterator[tuple[int, StageBytes]]:
        """Divide the documents of one part.

        part: the sorted documents, and the index with their keys and places.
        """
        records, packed = part
        index = array("Q", read_value(packed))
        prefixes, starts = index[: len(index) // 2], index[len(index) // 2 :]
        for shard, start, stop in divide_part_into_shards(
            prefixes, starts, count_bytes(records), plan.cuts, self._shards
        ):
            yield shard, cut_value(records, start, stop)


class MakeShuffledShard(beam.DoFn):  # type: ignore[misc]
    """Make a shard from its documents of all text parts, with the function ``run_task``."""

    def __init__(self, settings: ShuffleSettings) -> None:
        self._settings = settings

    def process(
        self, gathered: tuple[int, Iterable[StageBytes]], plan: ShufflePlan
    ) -> Iterator[NumberedEntry]:
        """Make one shard.

        gathered: the shard's number, and its documents from each part.
        """
        number, documents = gathered
        task = self._settings.tasks.make_shuffled_task(
            number, self._settings.num_shards, plan.corpus, partial(map, read_value, documents)
        )
        with add_path_to_errors(f"shard {number}"), ONE_AT_A_TIME:
            result = run_task(task)
        add_to_counters(count_shards(result.shards, result.kept))
        add_to_distributions(list_shard_values(result.shards))
        yield from list_largest_document(result)
        for target, (_, shards) in enumerate(result.entries):
            yield from ((target, shard) for shard in shards)
