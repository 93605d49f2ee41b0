"""The last stages of the pipelines: make shards from text parts, and write the manifest of the dataset.

Beam may run a task twice, after a failure or as a backup for a slow worker. The result is the same as if each
task ran once. Each attempt writes its file under a temporary name and then renames it, and all attempts write
the same bytes. The next stage gets the outputs of only one attempt, so the manifest lists every shard once.
"""

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import apache_beam as beam

from beam_pipelines.report.counters import add_to_counters, add_to_distributions
from beam_pipelines.report.errors import add_path_to_errors
from bertdata.build.large_document import make_large_document_warning
from bertdata.build.shard_task import Target, TaskPlan, TaskResult, run_task
from bertdata.dataset.manifest import InputEntry, ShardEntry, SkippedEntry
from bertdata.dataset.provenance import NO_PROVENANCE, Provenance, add_vocabulary_manifest


class LargestDocument(NamedTuple):
    """Size of the largest document in the text of a task.

    tokens: number of its tokens.
    """

    tokens: int


Entry = InputEntry | ShardEntry | SkippedEntry | Provenance | LargestDocument
NumberedEntry = tuple[int, Entry]
"""Pair of the number of a dataset that the run makes, and something that the dataset's manifest is made from.

The second item is a manifest entry, the manifests of the text parts, or the size of a task's largest
document, from which only a warning is made.
"""

ONE_AT_A_TIME = threading.Lock()
"""Lock that a thread of a worker process holds while it makes shards.

The threads share the tokeniser and its cache of words. Because of the lock, memory contains only one text
part at a time.
"""

_LOGGER = logging.getLogger(__name__)


class MakeShards(beam.PTransform):  # type: ignore[misc]
    """Write the shards of each text part.

    The outputs are the manifest entries of the parts and of the shards, each with the number of its dataset.
    For a part that is read, and for a part that is skipped because it cannot be read::

        "results/part-00000-of-00500" -> (0, InputEntry(...)), (0, ShardEntry(...))
        "results/part-00001-of-00500" -> (0, SkippedEntry(...))
    """

    def __init__(self, plan: TaskPlan) -> None:
        super().__init__()
        self._plan = plan

    def expand(self, parts: beam.PCollection[str]) -> beam.PCollection[NumberedEntry]:
        """Connect the stages from parts to manifest entries."""
        return (
            parts
            # Without Reshuffle, a runner may fuse listing the parts and making shards into one stage. Then a
            # single worker would do all the work.
            | "spread over workers" >> beam.Reshuffle()
            | "make shards of a part" >> beam.ParDo(MakeShard(self._plan))
        )


class MakeShard(beam.DoFn):  # type: ignore[misc]
    """Make the shards of a text part with the function ``run_task``.

    Beam may run the task twice. The second attempt writes the same bytes, or keeps the finished shards.
    """

    def __init__(self, plan: TaskPlan) -> None:
        self._plan = plan

    def setup(self) -> None:
        """Load the tokeniser once in each worker."""
        self._plan.load()

    def process(self, part: str) -> Iterator[NumberedEntry]:
        """Make the shards of one part."""
        task = self._plan.make_part_task(part)
        with add_path_to_errors(part), ONE_AT_A_TIME:
            start = time.monotonic()
            result = run_task(task)
            seconds = time.monotonic() - start
        for warning in result.warnings:
            _LOGGER.warning("%s", warning)
        # If a task runs twice, Beam keeps the counters of only one successful attempt. So every part is
        # counted once.
        if result.skipped is not None:
            add_to_counters(count_part(result.skipped))
            yield from ((number, result.skipped) for number in range(len(self._plan.targets)))
            return
        shards = result.shards
        add_to_counters(count_part(result.entries[0][0]))
        add_to_counters(count_shards(shards, result.kept))
        add_to_distributions(list_part_values(result.entries[0][0], seconds))
        add_to_distributions(list_shard_values(shards))
        yield from list_largest_document(result)
        for number, (part_entry, made) in enumerate(result.entries):
            yield number, part_entry
            yield from ((number, shard) for shard in made)


def list_largest_document(result: TaskResult) -> Iterator[NumberedEntry]:
    """Yield the size of the task's largest document for the first dataset of the run, unless all shards were
    kept.

    The other datasets are the further phases, which are made of the same text.
    """
    if result.largest_document is not None:
        yield 0, LargestDocument(result.largest_document)


def count_part(part: InputEntry | SkippedEntry) -> dict[str, int]:
    """Return what a text part adds to Beam's counters, by the counter's name."""
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
    """Return what some shards add to Beam's counters, by the counter's name.

    kept: how many of the shards were finished by an earlier run and not made again.
    """
    return {
        "examples": sum(shard.examples for shard in shards),
        "masked_tokens": sum(shard.masked_tokens for shard in shards),
        "lost_tokens": sum(shard.lost_tokens or 0 for shard in shards),
        "bytes": sum(shard.bytes for shard in shards),
        "shards_kept": kept,
    }


def list_part_values(part: InputEntry | SkippedEntry, seconds: float) -> dict[str, list[int]]:
    """Return the values that a text part adds to Beam's distributions, by the distribution's name.

    The result is empty for a part that was skipped because it cannot be read.

    seconds: time that a worker took for the part.
    """
    if isinstance(part, SkippedEntry):
        return {}
    return {
        "part_bytes": [part.bytes],
        "part_tokens": [part.tokens],
        "part_milliseconds": [round(seconds * 1000)],
    }


def list_shard_values(shards: Sequence[ShardEntry]) -> dict[str, list[int]]:
    """Return the values that some shards add to Beam's distributions, by the distribution's name."""
    return {
        "shard_examples": [shard.examples for shard in shards],
        "shard_tokens": [shard.tokens for shard in shards],
        "shard_bytes": [shard.bytes for shard in shards],
    }


class WriteManifests(beam.PTransform):  # type: ignore[misc]
    """Write the manifests of the datasets. The outputs are the paths of the datasets.

    Each manifest contains the entries of text parts and shards, and refers to the manifests of the text
    parts.
    """

    def __init__(self, targets: tuple[Target, ...], vocabulary: str) -> None:
        super().__init__()
        self._targets = targets
        self._vocabulary = vocabulary

    def expand(
        self, given: tuple[beam.PCollection[NumberedEntry], beam.PCollection[Provenance]]
    ) -> beam.PCollection[str]:
        """Connect the stages from manifest entries to manifests.

        given: the entries, and the manifests of the text parts.
        """
        entries, provenance = given
        cited = provenance | "sources of each dataset" >> beam.FlatMap(repeat_for_targets, len(self._targets))
        return (
            (entries, cited)
            | "entries and sources" >> beam.Flatten()
            | "gather by dataset" >> beam.GroupByKey()
            | "write manifest"
            >> beam.ParDo(WriteManifest(self._targets, self._vocabulary)).with_output_types(str)
        )


def repeat_for_targets(provenance: Provenance, targets: int) -> Iterator[NumberedEntry]:
    """Yield the text manifests once for each dataset of the run, because each dataset's manifest refers to
    them.

    targets: number of datasets.
    """
    yield from ((number, provenance) for number in range(targets))


class WriteManifest(beam.DoFn):  # type: ignore[misc]
    """Write the manifest of a dataset (see ``Dataset.finish``).

    Beam may run the task twice, since both attempts write the same bytes.
    """

    def __init__(self, targets: tuple[Target, ...], vocabulary: str) -> None:
        self._targets = targets
        self._vocabulary = vocabulary
        # Workers on other machines get the vocabulary, but not the manifest beside it, which is read here.
        md5 = targets[0].dataset.plan.settings.vocabulary["md5"]
        self._beside = add_vocabulary_manifest(NO_PROVENANCE, str(vocabulary), md5).vocabulary

    def process(self, gathered: tuple[int, Iterable[Entry]]) -> Iterator[str]:
        """Write the manifest of one dataset.

        gathered: the dataset's number, and what its manifest is made from.
        """
        number, entries = gathered[0], list(gathered[1])
        target = self._targets[number]
        dataset, inputs = target.dataset, [entry for entry in entries if isinstance(entry, InputEntry)]
        warnings = dataset.list_changed_inputs(inputs)
        cited = next((entry for entry in entries if isinstance(entry, Provenance)), NO_PROVENANCE)
        dataset.finish(
            inputs,
            [entry for entry in entries if isinstance(entry, ShardEntry)],
            [entry for entry in entries if isinstance(entry, SkippedEntry)],
            vocabulary=self._vocabulary,
            provenance=replace(cited, vocabulary=self._beside),
        )
        largest = max((entry.tokens for entry in entries if isinstance(entry, LargestDocument)), default=None)
        warning = make_large_document_warning(largest, inputs, target.settings.max_seq_length)
        for one in [*warnings, *([] if warning is None else [warning])]:
            _LOGGER.warning("%s", one)
        yield dataset.directory
