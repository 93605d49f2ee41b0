"""Stages that pack the examples of shards into rows: count lengths, plan rows, sort examples, gather rows.

A row of a packed shard contains several examples. One worker plans all rows. Examples never pass through the
runner: they are stored in sorted files in the output directory, each with a few million tokens, and the
stages pass on only the names of these files.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import apache_beam as beam

from beam_pipelines.report.counters import add_to_counters
from beam_pipelines.report.errors import add_path_to_errors
from beam_pipelines.stages.shards import ONE_AT_A_TIME, count_shards
from bertdata.dataset.manifest import ShardEntry
from bertdata.packing.gather import write_or_keep_shard
from bertdata.packing.input_dataset import CountTask, InputDataset, LengthCounts, count_shard_lengths
from bertdata.packing.planned_pack import PlannedPack, plan_pack
from bertdata.packing.run import finish_pack
from bertdata.packing.settings import PackSettings
from bertdata.packing.sort import sort_by_row


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PackStages:
    """The arguments that all stages share.

    source: the dataset to pack.
    settings: the settings of the packed rows.
    output: directory of the packed dataset.
    """

    source: InputDataset
    settings: PackSettings
    output: str


class MakePacks(beam.PTransform):  # type: ignore[misc]
    """Make a packed dataset from the source's shards.

    The input elements are the numbers of the shards. The output is the path of the dataset, when its manifest
    is written. For a source of three shards::

        0, 1, 2 -> "packed"
    """

    def __init__(self, stages: PackStages) -> None:
        super().__init__()
        self._stages = stages

    def expand(self, numbers: beam.PCollection[int]) -> beam.PCollection[str]:
        """Connect the stages from the source's shards to the packed dataset."""
        planned = (
            numbers
            | "spread over workers" >> beam.Reshuffle()
            | "count lengths" >> beam.ParDo(CountShard(self._stages))
            | "gather lengths" >> beam.GroupByKey()
            | "plan rows" >> beam.ParDo(PlanRows(self._stages))
        )
        # The plan is a side input of the later stages. So they start when the plan is finished. In the same
        # way, the list of sorted files makes "gather rows" wait until "sort examples" has ended.
        plan = beam.pvalue.AsSingleton(planned)
        files = (
            planned
            | "list sort tasks" >> beam.FlatMap(list_sort_tasks, self._stages.output)
            | "spread sort tasks" >> beam.Reshuffle()
            | "sort examples" >> beam.ParDo(SortExamples(self._stages), plan)
        )
        shards = (
            planned
            | "list shards" >> beam.FlatMap(list_shards)
            | "spread shards" >> beam.Reshuffle()
            | "gather rows" >> beam.ParDo(GatherShard(self._stages), plan, beam.pvalue.AsList(files))
        )
        return (
            shards
            | "gather entries" >> beam.GroupByKey()
            | "write manifest" >> beam.ParDo(WritePackManifest(self._stages), plan)
        )


class CountShard(beam.DoFn):  # type: ignore[misc]
    """Count the examples of a shard by their length. The output is (0, (shard number, LengthCounts))."""

    def __init__(self, stages: PackStages) -> None:
        self._source = stages.source

    def process(self, number: int) -> Iterator[tuple[int, tuple[int, LengthCounts]]]:
        """Count the examples of the shard with this number."""
        with add_path_to_errors(self._source.opened.shards[number].path):
            yield (
                0,
                (
                    number,
                    count_shard_lengths(CountTask(source=self._source.select_shards(number, number + 1))),
                ),
            )


class PlanRows(beam.DoFn):  # type: ignore[misc]
    """Plan all rows from the lengths of all examples, and write the plan into the output directory."""

    def __init__(self, stages: PackStages) -> None:
        self._stages = stages

    def process(self, gathered: tuple[int, Iterable[tuple[int, LengthCounts]]]) -> Iterator[PlannedPack]:
        """Plan the rows of all shards.

        gathered: the key 0, and for each shard its number and its counts of lengths.
        """
        counts = dict(gathered[1])
        planned = plan_pack(
            self._stages.source, self._stages.settings, [counts[number] for number in sorted(counts)]
        )
        planned.dataset(self._stages.output).begin()
        yield planned


def list_sort_tasks(planned: PlannedPack, output: str) -> Iterator[int]:
    """Yield the numbers of the tasks that "sort examples" consists of."""
    yield from range(len(planned.sort_tasks(planned.job(output, None))))


def list_shards(planned: PlannedPack) -> Iterator[int]:
    """Yield the numbers of the packed shards."""
    yield from range(len(planned.cuts.starts) - 1)


class SortExamples(beam.DoFn):  # type: ignore[misc]
    """Sort the examples of some shards by the row that they go to.

    The outputs are the paths of the sorted files.
    """

    def __init__(self, stages: PackStages) -> None:
        self._output = stages.output

    def process(self, number: int, planned: PlannedPack) -> Iterator[str]:
        """Sort the examples of the task with this number."""
        task = planned.sort_tasks(planned.job(self._output, None))[number]
        with add_path_to_errors(task.source.shards[0].path), ONE_AT_A_TIME:
            yield from sort_by_row(task).files


class GatherShard(beam.DoFn):  # type: ignore[misc]
    """Write a packed shard from the sorted files. The output is (0, ShardEntry).

    Beam may run the task twice, since both attempts write the same bytes.
    """

    def __init__(self, stages: PackStages) -> None:
        self._output = stages.output

    def process(
        self, number: int, planned: PlannedPack, files: list[str]
    ) -> Iterator[tuple[int, ShardEntry]]:
        """Write the packed shard with this number.

        files: paths of the sorted files.
        """
        task = planned.gather_tasks(planned.job(self._output, None), tuple(sorted(files)))[number]
        with add_path_to_errors(task.name), ONE_AT_A_TIME:
            made = write_or_keep_shard(task)
        add_to_counters({**count_shards([made.entry], int(made.is_kept)), "rows": made.entry.rows or 0})
        yield 0, made.entry


class WritePackManifest(beam.DoFn):  # type: ignore[misc]
    """Write the manifest of the packed dataset. The output is the path of the dataset.

    Beam may run the task twice, since both attempts write the same bytes.
    """

    def __init__(self, stages: PackStages) -> None:
        self._stages = stages

    def process(self, gathered: tuple[int, Iterable[ShardEntry]], planned: PlannedPack) -> Iterator[Any]:
        """Write the manifest.

        gathered: the key 0, and the entries of all packed shards.
        """
        job = planned.job(self._stages.output, None)
        finish_pack(planned, job, list(gathered[1]), self._stages.source.vocabulary_path())
        yield self._stages.output
