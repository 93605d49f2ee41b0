"""The last stages of the pipelines: parts to shards, shards to a finished dataset."""

import logging
import threading
import time
from collections.abc import Iterable, Iterator

import apache_beam as beam

from beam_pipelines.counters import count, spread
from beam_pipelines.failures import naming
from bertdata import storage
from bertdata._native import Engine
from bertdata.jobs import Job, JobResult, Target, load_tokenizer, run_job
from bertdata.manifest import InputEntry, ShardEntry, SkippedEntry

Entries = tuple[InputEntry, ShardEntry]
Made = Entries | SkippedEntry
"""What a target gets of a part: its shard, or the reason why there is none."""

_ONE_AT_A_TIME = threading.Lock()
"""A process makes one part's shards at a time, however many threads a runner gives it: the tokeniser
and its cache of words are shared within the process, and memory stays that of one part."""

_LOGGER = logging.getLogger(__name__)


class MakeShards(beam.PTransform):  # type: ignore[misc]
    """Paths of parts to (number of the target, entries), one for each shard; the shards are written.

    For a part that is left out (only with skip_bad): what the manifest says of it, for each target.

    ::

        "results/part-00000-of-00500" -> (0, (InputEntry(...), ShardEntry(...)))
    """

    def __init__(
        self,
        vocabulary: str,
        targets: tuple[Target, ...],
        engine: Engine | None = None,
        *,
        skip_bad: bool = False,
    ) -> None:
        super().__init__()
        self._make_shard = MakeShard(vocabulary, targets, engine, skip_bad=skip_bad)

    def expand(self, parts: beam.PCollection[str]) -> beam.PCollection[tuple[int, Made]]:
        return (
            parts
            # Without it a runner may fuse this stage with the one that lists the parts: one worker.
            | "spread over workers" >> beam.Reshuffle()
            | "make shards of a part" >> beam.ParDo(self._make_shard).with_output_types(tuple[int, Made])
        )


class MakeShard(beam.DoFn):  # type: ignore[misc]
    """Calls ``bertdata.jobs.run_job``. Harmless when repeated: files appear whole, with the same bytes."""

    def __init__(
        self,
        vocabulary: str,
        targets: tuple[Target, ...],
        engine: Engine | None = None,
        *,
        skip_bad: bool = False,
    ) -> None:
        self._vocabulary = vocabulary
        self._targets = targets
        self._engine = engine
        self._skip_bad = skip_bad

    def setup(self) -> None:
        settings = self._targets[0].settings
        load_tokenizer(self._vocabulary, settings.dialect, settings.lower_case, self._engine)

    def process(self, part: str) -> Iterator[tuple[int, Made]]:
        job = Job(
            part=part,
            vocabulary=self._vocabulary,
            targets=self._targets,
            engine=self._engine,
            skip_bad=self._skip_bad,
        )
        with naming(part), _ONE_AT_A_TIME:
            start = time.monotonic()
            result = run_job(job)
            seconds = time.monotonic() - start
        for warning in result.warnings:
            _LOGGER.warning("%s", warning)
        count(_amounts(result))
        if result.skipped is None:
            spread(_values(result, seconds))
        if result.skipped is not None:
            yield from ((number, result.skipped) for number in range(len(self._targets)))
        yield from enumerate(result.entries)


def _amounts(result: JobResult) -> dict[str, int]:
    """What a job made, as counters."""
    if result.skipped is not None:
        return {"parts_skipped": 1}
    part = result.entries[0][0]
    shards = [shard for _, shard in result.entries]
    return {
        "parts": 1,
        "documents": part.documents,
        "sentences": part.sentences,
        "tokens": part.tokens,
        "examples": sum(shard.examples for shard in shards),
        "masked_tokens": sum(shard.masked_tokens for shard in shards),
        "bytes": sum(shard.bytes for shard in shards),
        "shards_kept": result.kept,
    }


def _values(result: JobResult, seconds: float) -> dict[str, list[int]]:
    """How much a job did, as distributions."""
    part = result.entries[0][0]
    shards = [shard for _, shard in result.entries]
    return {
        "part_bytes": [part.bytes],
        "part_tokens": [part.tokens],
        "part_milliseconds": [round(seconds * 1000)],
        "shard_examples": [shard.examples for shard in shards],
        "shard_tokens": [shard.tokens for shard in shards],
        "shard_bytes": [shard.bytes for shard in shards],
    }


class WriteManifests(beam.PTransform):  # type: ignore[misc]
    """(Number of the target, entries) of all shards to the directories of the finished datasets."""

    def __init__(self, targets: tuple[Target, ...]) -> None:
        super().__init__()
        self._targets = targets

    def expand(self, entries: beam.PCollection[tuple[int, Made]]) -> beam.PCollection[str]:
        return (
            entries
            | "gather by dataset" >> beam.GroupByKey()
            | "write manifest" >> beam.ParDo(WriteManifest(self._targets)).with_output_types(str)
        )


class WriteManifest(beam.DoFn):  # type: ignore[misc]
    """Calls ``Dataset.finish``. Harmless when repeated: it writes the same bytes."""

    def __init__(self, targets: tuple[Target, ...]) -> None:
        self._targets = targets

    def process(self, gathered: tuple[int, Iterable[Made]]) -> Iterator[str]:
        number, made = gathered[0], list(gathered[1])
        skipped = [one for one in made if isinstance(one, SkippedEntry)]
        entries = [one for one in made if not isinstance(one, SkippedEntry)]
        dataset = self._targets[number].dataset
        storage.make_directory(dataset.unfinished)  # an earlier attempt that came this far removed it
        dataset.finish(entries, skipped)
        yield dataset.directory
