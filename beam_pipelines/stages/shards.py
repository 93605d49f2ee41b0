"""The last stages of the pipelines: from parts to shards, and from shards to a finished dataset.

The result is as if every task ran exactly once, although Beam may run a task twice: after a failure, or in
parallel as a backup for a slow worker. Each attempt writes under a temporary name and then renames the file,
and both attempts write the same bytes. Only the outputs of one attempt reach the next stage, so the manifest
lists every shard once.
"""

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Sequence

import apache_beam as beam

from beam_pipelines.report.counters import add_to_counters, add_to_distributions
from beam_pipelines.report.errors import add_path_to_errors
from bertdata.build.shard_task import Target, TaskPlan, run_task
from bertdata.dataset.manifest import InputEntry, ShardEntry, SkippedEntry
from bertdata.dataset.provenance import NO_PROVENANCE, Provenance

Entry = InputEntry | ShardEntry | SkippedEntry | Provenance
NumberedEntry = tuple[int, Entry]
"""Number of a target dataset, with an entry for its manifest or the manifests that it cites."""

ONE_AT_A_TIME = threading.Lock()
"""Lock of a process, held while it makes shards.

A worker's threads share the tokeniser and its cache of words. With the lock, memory holds only one part.
"""

_LOGGER = logging.getLogger(__name__)


class MakeShards(beam.PTransform):  # type: ignore[misc]
    """Write the shards of each part. Returns the manifest entries of parts and shards, for each target.

    ::

        "results/part-00000-of-00500" -> (0, InputEntry(...)), (0, ShardEntry(...))
        a part that is skipped        -> (0, SkippedEntry(...))
    """

    def __init__(self, plan: TaskPlan) -> None:
        super().__init__()
        self._plan = plan

    def expand(self, parts: beam.PCollection[str]) -> beam.PCollection[NumberedEntry]:
        return (
            parts
            # Without this, a runner may fuse listing parts and making shards into one stage. One worker
            # would then do all the work.
            | "spread over workers" >> beam.Reshuffle()
            | "make shards of a part" >> beam.ParDo(MakeShard(self._plan))
        )


class MakeShard(beam.DoFn):  # type: ignore[misc]
    """Make a part's shards with ``run_task``.

    The task may run twice. The second attempt writes the same bytes, or keeps the finished shards.
    """

    def __init__(self, plan: TaskPlan) -> None:
        self._plan = plan

    def setup(self) -> None:
        self._plan.load()

    def process(self, part: str) -> Iterator[NumberedEntry]:
        task = self._plan.make_part_task(part)
        with add_path_to_errors(part), ONE_AT_A_TIME:
            start = time.monotonic()
            result = run_task(task)
            seconds = time.monotonic() - start
        for warning in result.warnings:
            _LOGGER.warning("%s", warning)
        # If a task runs twice, Beam keeps the counters of only one successful attempt. So no part is counted
        # twice.
        if result.skipped is not None:
            add_to_counters(count_part(result.skipped))
            yield from ((number, result.skipped) for number in range(len(self._plan.targets)))
            return
        shards = result.shards
        add_to_counters(count_part(result.entries[0][0]))
        add_to_counters(count_shards(shards, result.kept))
        add_to_distributions(measure_part(result.entries[0][0], seconds))
        add_to_distributions(measure_shards(shards))
        for number, (part_entry, made) in enumerate(result.entries):
            yield number, part_entry
            yield from ((number, shard) for shard in made)


def count_part(part: InputEntry | SkippedEntry) -> dict[str, int]:
    """Return the amounts for the counters for a part that was read or skipped."""
    if isinstance(part, SkippedEntry):
        return {"parts_skipped": 1}
    return {
        "parts": 1,
        "documents": part.documents,
        "sentences": part.sentences,
        "tokens": part.tokens,
        "unknown_tokens": part.unknown_tokens or 0,
    }


def count_shards(shards: Sequence[ShardEntry], kept: int) -> dict[str, int]:
    """Return the amounts for the counters for some shards.

    kept: number of shards kept from an earlier run.
    """
    return {
        "examples": sum(shard.examples for shard in shards),
        "masked_tokens": sum(shard.masked_tokens for shard in shards),
        "lost_tokens": sum(shard.lost_tokens or 0 for shard in shards),
        "bytes": sum(shard.bytes for shard in shards),
        "shards_kept": kept,
    }


def measure_part(part: InputEntry | SkippedEntry, seconds: float) -> dict[str, list[int]]:
    """Return the values of a part for the distributions. Empty for a skipped part."""
    if isinstance(part, SkippedEntry):
        return {}
    return {
        "part_bytes": [part.bytes],
        "part_tokens": [part.tokens],
        "part_milliseconds": [round(seconds * 1000)],
    }


def measure_shards(shards: Sequence[ShardEntry]) -> dict[str, list[int]]:
    """Return the values of some shards for the distributions."""
    return {
        "shard_examples": [shard.examples for shard in shards],
        "shard_tokens": [shard.tokens for shard in shards],
        "shard_bytes": [shard.bytes for shard in shards],
    }


class WriteManifests(beam.PTransform):  # type: ignore[misc]
    """Write the datasets' manifests. Returns their directories.

    Each manifest contains the entries of parts and shards, and names the manifests of the text parts.
    """

    def __init__(self, targets: tuple[Target, ...], vocabulary: str) -> None:
        super().__init__()
        self._targets = targets
        self._vocabulary = vocabulary

    def expand(
        self, given: tuple[beam.PCollection[NumberedEntry], beam.PCollection[Provenance]]
    ) -> beam.PCollection[str]:
        entries, provenance = given
        cited = provenance | "sources of each dataset" >> beam.FlatMap(number_for_targets, len(self._targets))
        return (
            (entries, cited)
            | "entries and sources" >> beam.Flatten()
            | "gather by dataset" >> beam.GroupByKey()
            | "write manifest"
            >> beam.ParDo(WriteManifest(self._targets, self._vocabulary)).with_output_types(str)
        )


def number_for_targets(provenance: Provenance, targets: int) -> Iterator[NumberedEntry]:
    """Yield (target number, text manifest) for each target, since each target's manifest cites it."""
    yield from ((number, provenance) for number in range(targets))


class WriteManifest(beam.DoFn):  # type: ignore[misc]
    """Write a dataset's manifest (``Dataset.finish``).

    The task may run twice, because both attempts write the same bytes.
    """

    def __init__(self, targets: tuple[Target, ...], vocabulary: str) -> None:
        self._targets = targets
        self._vocabulary = vocabulary

    def process(self, gathered: tuple[int, Iterable[Entry]]) -> Iterator[str]:
        number, entries = gathered[0], list(gathered[1])
        dataset = self._targets[number].dataset
        dataset.finish(
            [entry for entry in entries if isinstance(entry, InputEntry)],
            [entry for entry in entries if isinstance(entry, ShardEntry)],
            [entry for entry in entries if isinstance(entry, SkippedEntry)],
            vocabulary=self._vocabulary,
            provenance=next((entry for entry in entries if isinstance(entry, Provenance)), NO_PROVENANCE),
        )
        yield dataset.directory
