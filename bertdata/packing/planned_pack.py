"""A packed dataset that is planned but not yet written, and the tasks that write it."""

from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from bertdata.config.dataset_settings import DatasetSettings, drop_file_settings, make_shuffle_settings
from bertdata.config.settings import require
from bertdata.dataset.manifest import DatasetPlan, InputEntry, make_corpus_entry
from bertdata.dataset.writer import Dataset
from bertdata.io.file_check import compute_md5
from bertdata.packing.gather import PackedShardTask
from bertdata.packing.input_dataset import (
    InputDataset,
    LengthCounts,
    add_counted_md5s,
    find_most_masks_by_length,
)
from bertdata.packing.job import PackJob
from bertdata.packing.methods import plan_packs, split_rows
from bertdata.packing.pack_plan import PackPlan
from bertdata.packing.settings import PackSettings
from bertdata.packing.shard_cuts import RowCuts, divide_rows, format_packed_shard_names
from bertdata.packing.sort import RowSortTask
from bertdata.records import ShardLayout

MAX_SORT_TASKS = 1024
"""The largest number of sort tasks, because every bucket of rows opens the files that all sort tasks
wrote.
"""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PlannedPack:
    """A packed dataset that is planned: which examples it has, and which lengths share a row.

    source: the dataset to be packed.
    settings: settings of the packed dataset.
    counts: for each shard of the source, how many examples of each length it has.
    plan: number of rows for each combination of lengths.
    """

    source: InputDataset
    settings: PackSettings
    counts: tuple[LengthCounts, ...]
    plan: PackPlan

    @property
    def inputs(self) -> tuple[InputEntry, ...]:
        """The manifest entries of the packed dataset's inputs.

        These are the text files that the source was made from. If the source has no manifest, its own files
        are the inputs.
        """
        if self.source.inputs is not None:
            return self.source.inputs
        return tuple(entry for one in self.counts if (entry := one.entry) is not None)

    def dataset(self, output: str) -> Dataset:
        """Return the packed dataset as an object that can be written to the directory ``output``."""
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
                packed_from=None if manifest is None else compute_md5(manifest),
            ),
        )

    def _dataset_settings(self) -> DatasetSettings:
        """Return the settings of the packed dataset.

        They are the settings of the source, except those that describe how packed rows are stored.
        """
        container = {
            **drop_file_settings(self.source.settings.container),
            "remask": False,
            "format": self.settings.container,
            "packing": self.settings.layout,
            "sequences_per_row": self.settings.most,
            "packing_method": self.settings.method,
            "packing_seed": self.settings.seed,
            "packing_plan": compute_plan_md5(self.plan),
            **make_shuffle_settings(len(self.cuts.starts) - 1),
        }
        return replace(self.source.settings, container=container)

    @property
    def cuts(self) -> RowCuts:
        """The division of the rows into shards, and of each shard into buckets of rows that are in memory
        together.
        """
        return divide_rows(
            self.plan.rows,
            self.plan.max_seq_length,
            self.settings.layout,
            self.settings.num_shards,
            len(self.source.opened.shards),
        )

    def job(self, output: str, folder: str | None) -> PackJob:
        """Return what all tasks of the run need to know.

        output: directory of the packed dataset.
        folder: directory for scratch files. None means the dataset's ``unfinished/``.
        """
        cuts = self.cuts
        return PackJob(
            dataset=self.dataset(output),
            layout=make_packed_layout(self.source, self.settings),
            format=self.settings.container,
            plan=self.plan,
            seed=self.settings.seed,
            cuts=cuts,
            names=tuple(
                format_packed_shard_names(self.settings.layout, self.settings.container, len(cuts.starts) - 1)
            ),
            corpus=make_corpus_entry(self.inputs, self.source.skipped),
            folder=folder,
        )

    def sort_tasks(self, job: PackJob) -> list[RowSortTask]:
        """Return the tasks that sort all examples by row.

        Each task sorts a few consecutive shards of the source.
        """
        histograms = [one.histogram for one in self.counts]
        # before[i] counts the examples in the shards before shard i, by length. The task that starts with
        # shard i continues the numbering from these counts, so no task has to wait for another.
        size = -(-len(histograms) // MAX_SORT_TASKS)
        before = list(accumulate(histograms, initial=np.zeros_like(histograms[0])))
        return [
            RowSortTask(
                job=job,
                number=start // size,
                source=self.source.select_shards(start, start + size),
                before=before[start],
                counts=tuple(histograms[start : start + size]),
            )
            for start in range(0, len(histograms), size)
        ]

    def gather_tasks(self, job: PackJob, files: tuple[str, ...] = ()) -> list[PackedShardTask]:
        """Return the tasks that write the packed shards.

        files: the scratch files of all sort tasks.
        """
        return [PackedShardTask(job=job, number=number, files=files) for number in range(len(job.names))]


def plan_pack(source: InputDataset, settings: PackSettings, counts: list[LengthCounts]) -> PlannedPack:
    """Plan packed rows for all examples of the source.

    Raises SettingsError if the settings do not fit the examples.

    counts: for each shard of the source, how many examples of each length it has.
    """
    source = add_counted_md5s(source, counts)
    size = source.opened.layout.max_seq_length
    require(settings.most <= size, f"max_sequences_per_pack is {settings.most}, expected at most {size}")
    histogram = np.sum([one.histogram for one in counts], axis=0)
    plan = plan_packs(histogram, most=settings.most, method=settings.method)
    layout = make_packed_layout(source, settings)
    # Some layouts limit the masked positions of a row. Rows that could have more are split.
    room = settings.rows.mask_room(layout)
    if room is not None:
        plan = split_rows(plan, find_most_masks_by_length(source, counts).tolist(), room)
    return PlannedPack(source=source, settings=settings, counts=tuple(counts), plan=plan)


def make_packed_layout(source: InputDataset, settings: PackSettings) -> ShardLayout:
    """Return the shape of the packed rows' records."""
    return replace(
        source.opened.layout,
        remask=False,
        pad_position=None,
        padding_id=0,
        packing=settings.layout,
        sequences_per_row=settings.most,
    )


def compute_plan_md5(plan: PackPlan) -> str:
    """Return the md5 of a packing plan.

    It is computed from a text with a line ``LENGTH LENGTH ...: ROWS`` for each combination of lengths.
    """
    lines = (f"{' '.join(map(str, lengths))}: {rows}\n" for lengths, rows in plan.rows_by_lengths)
    return compute_md5("".join(lines).encode())
