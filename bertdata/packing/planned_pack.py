"""A packed dataset that is planned: its source, its rows, and the tasks that make it."""

from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from bertdata.config.dataset_settings import DatasetSettings, shuffled_into, without_padding
from bertdata.config.settings import check
from bertdata.dataset.manifest import DatasetPlan, InputEntry, corpus_entry
from bertdata.dataset.writer import Dataset
from bertdata.io.file_check import md5_of
from bertdata.packing.gather import PackedShardTask
from bertdata.packing.job import PackJob
from bertdata.packing.methods import plan_packs, split_rows
from bertdata.packing.pack_plan import PackPlan
from bertdata.packing.settings import PackSettings
from bertdata.packing.shard_cuts import RowCuts, cut_rows, packed_shard_names
from bertdata.packing.sort import RowSortTask
from bertdata.packing.source import LengthCounts, PackSource, masks_by_length, with_md5s
from bertdata.records import ShardLayout

MOST_SORT_TASKS = 1024
"""Tasks that sort examples; each file of theirs is opened for each bucket of rows."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PlannedPack:
    """The rows of a source's examples, and all that making them needs. counts: by shard."""

    source: PackSource
    settings: PackSettings
    counts: tuple[LengthCounts, ...]
    plan: PackPlan

    @property
    def inputs(self) -> tuple[InputEntry, ...]:
        """The entries of the inputs: those of the source, else its files themselves."""
        if self.source.inputs is not None:
            return self.source.inputs
        return tuple(entry for one in self.counts if (entry := one.entry) is not None)

    def dataset(self, output: str) -> Dataset:
        """The packed dataset in that directory."""
        source = self.source
        manifest = source.provenance.dataset
        names = (*(entry.name for entry in self.inputs), *(entry.name for entry in source.skipped))
        return Dataset(
            output,
            DatasetPlan(
                recipe=source.recipe,
                phase=source.phase,
                settings=self._dataset_settings(),
                inputs=tuple(sorted(names)),
                packed_from=None if manifest is None else md5_of(manifest),
            ),
        )

    def _dataset_settings(self) -> DatasetSettings:
        """The settings in the manifest: the source's, in packed rows."""
        container = {
            **without_padding(self.source.settings.container),
            "remask": False,
            "format": self.settings.container,
            "packing": self.settings.layout,
            "sequences_per_row": self.settings.most,
            "packing_method": self.settings.method,
            "packing_seed": self.settings.seed,
            "packing_plan": plan_md5(self.plan),
            **shuffled_into(len(self.cuts.starts) - 1),
        }
        return replace(self.source.settings, container=container)

    @property
    def cuts(self) -> RowCuts:
        """The rows of each shard."""
        return cut_rows(
            self.plan.rows,
            self.plan.max_seq_length,
            self.settings.layout,
            self.settings.num_shards,
            len(self.source.opened.shards),
        )

    def job(self, output: str, folder: str | None) -> PackJob:
        """The settings of the tasks. folder: as in PackJob."""
        cuts = self.cuts
        return PackJob(
            dataset=self.dataset(output),
            layout=packed_layout(self.source, self.settings),
            format=self.settings.container,
            plan=self.plan,
            seed=self.settings.seed,
            cuts=cuts,
            names=tuple(
                packed_shard_names(self.settings.layout, self.settings.container, len(cuts.starts) - 1)
            ),
            corpus=corpus_entry(self.inputs, self.source.skipped),
            folder=folder,
        )

    def sort_tasks(self, job: PackJob) -> list[RowSortTask]:
        """The tasks that sort all examples, each those of a few consecutive shards."""
        histograms = [one.histogram for one in self.counts]
        size = -(-len(histograms) // MOST_SORT_TASKS)
        before = list(accumulate(histograms, initial=np.zeros_like(histograms[0])))
        return [
            RowSortTask(
                job=job,
                number=start // size,
                source=self.source.of_shards(start, start + size),
                before=before[start],
                counts=tuple(histograms[start : start + size]),
            )
            for start in range(0, len(histograms), size)
        ]

    def gather_tasks(self, job: PackJob, files: tuple[str, ...] = ()) -> list[PackedShardTask]:
        """The tasks that make the shards. files: all sorted ones."""
        return [PackedShardTask(job=job, number=number, files=files) for number in range(len(job.names))]


def plan_pack(source: PackSource, settings: PackSettings, counts: list[LengthCounts]) -> PlannedPack:
    """The plan for all examples of the source. SettingsError where they cannot be packed so."""
    source = with_md5s(source, counts)
    size = source.opened.layout.max_seq_length
    check(settings.most <= size, f"max_sequences_per_pack is {settings.most}, expected at most {size}")
    histogram = np.sum([one.histogram for one in counts], axis=0)
    plan = plan_packs(histogram, most=settings.most, method=settings.method)
    layout = packed_layout(source, settings)
    room = settings.rows.mask_room(layout)
    if room is not None:
        plan = split_rows(plan, masks_by_length(source, counts).tolist(), room)
    return PlannedPack(source=source, settings=settings, counts=tuple(counts), plan=plan)


def packed_layout(source: PackSource, settings: PackSettings) -> ShardLayout:
    """The layout of the packed rows."""
    return replace(
        source.opened.layout,
        remask=False,
        pad_position=None,
        padding_id=0,
        packing=settings.layout,
        sequences_per_row=settings.most,
    )


def plan_md5(plan: PackPlan) -> str:
    """The md5 of the plan's rows: a line ``LENGTH LENGTH ...: ROWS`` each."""
    lines = (f"{' '.join(map(str, lengths))}: {rows}\n" for lengths, rows in plan.rows_by_lengths)
    return md5_of("".join(lines).encode())
