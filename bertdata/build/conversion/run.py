"""The conversion of a dataset to another program's layout, from the plan to the finished manifest.

Shards that an earlier run has finished are kept.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from operator import attrgetter
from typing import Any

from bertdata.build.conversion.chop import make_chop_tasks, write_consecutive_shards
from bertdata.build.conversion.data_bin import check_for_fairseq
from bertdata.build.conversion.example_cuts import find_shard_starts
from bertdata.build.conversion.job import ConversionJob, ConvertedShard
from bertdata.build.conversion.mds import check_mds_source, find_mds_starts
from bertdata.build.conversion.permute import (
    PermutedShardTask,
    make_sort_tasks,
    sort_examples,
    write_permuted_shard,
)
from bertdata.build.conversion.settings import ConversionSettings
from bertdata.build.conversion.shard import find_kept_shard
from bertdata.dataset.companion_files import make_shard_form
from bertdata.dataset.lost_text import add_lost_tokens
from bertdata.dataset.manifest import DatasetPlan, InputEntry, Manifest, make_corpus_entry
from bertdata.dataset.writer import Dataset
from bertdata.errors import DataError, DatasetError, UsageError
from bertdata.examples.groups import MASKS, PAIRS, check_groups, has_group
from bertdata.examples.objectives import find_objective, find_plain_objective_name
from bertdata.io.file_check import compute_md5
from bertdata.io.process_pool import ProcessPool
from bertdata.io.scratch_files import choose_scratch_folder, delete_scratch_files
from bertdata.packing.input_dataset import (
    CountTask,
    InputDataset,
    add_counted_md5s,
    count_shard_lengths,
    open_input_dataset,
)
from bertdata.records import ExampleBatch
from bertdata.shards.arrow_fields import list_arrow_fields
from bertdata.shards.containers import ARROW, FAIRSEQ, MDS
from bertdata.shards.fairseq import OBJECTIVE
from bertdata.tokens.files import read_file_record
from bertdata.tokens.load import pin_file, vocabulary_of

ProgressCallback = Callable[[int, int, str], None]
"""Function that is called whenever a shard is finished.

Its arguments are the number of examples in finished shards, the number of all examples, and a line of text
about the finished shard.
"""


def plan_conversion(
    source: InputDataset,
    settings: ConversionSettings,
    output: str,
    inputs: tuple[InputEntry, ...],
    pool: ProcessPool,
) -> ConversionJob:
    """Return the description of the conversion, which all workers get.

    inputs: manifest entries of the source's input files.
    """
    settings.check_bins(source.opened.layout.max_seq_length)
    layout = replace(source.opened.layout, pad_position=None)
    if settings.to == MDS:
        starts = find_mds_starts(source, settings.make_output_settings(source.settings, 1), pool)
        shards = len(starts) - 1
        layout = replace(layout, objective=find_plain_objective_name(layout.objective))
    else:
        layout = replace(layout, padding_id=0)
        shards = 1 if settings.to == FAIRSEQ else settings.num_shards or len(source.opened.shards)
        starts = find_shard_starts(source.opened.examples, shards)
    if settings.to == FAIRSEQ:
        layout = replace(layout, objective=OBJECTIVE)
    manifest = source.provenance.dataset
    names = (*(entry.name for entry in inputs), *(entry.name for entry in source.skipped))
    plan = DatasetPlan(
        recipe=source.recipe,
        phase=source.phase,
        settings=settings.make_output_settings(source.settings, shards),
        inputs=tuple(sorted(names)),
        packed_from=None if manifest is None else compute_md5(manifest),
    )
    return ConversionJob(
        source=source.opened,
        dataset=Dataset(output, plan),
        format=settings.to,
        layout=layout,
        names=tuple(settings.make_file_names(number, shards, layout) for number in range(shards)),
        starts=starts,
        corpus=make_corpus_entry(inputs, source.skipped),
        tokenizer=pin_file(read_file_record(source.settings.tokenizer, source.vocabulary_path())),
        has_masks=source.settings.objective.get("masks", True),
        bin_size=settings.bin_size,
        form=make_shard_form(plan.settings) if settings.to == MDS else None,
    )


def _read_inputs(
    source: InputDataset, to: str, pool: ProcessPool
) -> tuple[InputDataset, tuple[InputEntry, ...]]:
    """Return the source with complete settings, and the manifest entries of its inputs.

    The manifest of a bertdata dataset lists its inputs. Files of other tools have no manifest. They are then
    read completely and listed as inputs themselves. If none of their examples is masked, this is added to the
    settings, because some layouts then leave out the columns for masks.

    to: the layout to convert to.
    """
    if source.inputs is not None:
        return source, source.inputs
    tasks = [CountTask(source=source.select_shards(at, at + 1)) for at in range(len(source.opened.shards))]
    counts = [found for _, found in pool.in_order(count_shard_lengths, tasks)]
    source = add_counted_md5s(source, counts)
    entries = tuple(found.entry for found in counts if found.entry is not None)
    has_masks = any(found.masks is not None and found.masks.any() for found in counts)
    if has_masks or to not in (ARROW, FAIRSEQ) or not has_group(_find_batch_type(source), MASKS):
        return source, entries
    unmasked = replace(source.settings, objective={**source.settings.objective, "masks": False})
    return replace(source, settings=unmasked), entries


def _find_batch_type(source: InputDataset) -> type[ExampleBatch]:
    """Return the class of batches that the source's examples are read in."""
    return find_objective(source.opened.layout.objective).batch_type


def convert_dataset(
    path: str,
    output: str,
    settings: ConversionSettings,
    *,
    vocabulary: str | None,
    unverified: bool,
    objective: str | None,
    workers: int,
    on_progress: ProgressCallback,
) -> Manifest:
    """Convert the dataset at ``path`` to another layout and return the new manifest.

    Shards that an earlier run has finished are kept.
    """
    source = open_input_dataset(path, vocabulary, unverified, objective)
    _check_source(source, path, settings)
    with ProcessPool(workers) as pool:
        source, inputs = _read_inputs(source, settings.to, pool)
        job = plan_conversion(source, settings, output, inputs, pool)
        with job.dataset.run():
            try:
                found = _make_shards(job, settings, pool, workers, on_progress)
            except (DataError, UsageError):
                # Faulty data would make the next run fail too, so the scratch files are deleted. After a kill
                # or a full disk they are kept, because they save the next run some work.
                delete_scratch_files(job.dataset.commit)
                raise
            return _finish_conversion(job, source, inputs, found)


def _finish_conversion(
    job: ConversionJob, source: InputDataset, inputs: tuple[InputEntry, ...], found: list[ConvertedShard]
) -> Manifest:
    """Write the manifest of the converted dataset, and the other small files that the new layout needs."""
    shards = sorted((entry for shard in found for entry in shard.entries), key=attrgetter("name"))
    entries = add_lost_tokens(shards, source.lost_tokens)
    return job.dataset.finish(
        inputs, entries, source.skipped, vocabulary=job.tokenizer.path, provenance=source.provenance
    )


def _check_source(source: InputDataset, path: str, settings: ConversionSettings) -> None:
    """Raise DatasetError or SettingsError if the new layout cannot hold the source's examples."""
    layout = source.opened.layout
    kind = find_objective(layout.objective).batch_type
    if layout.packing is not None:
        found = f"packed rows, in the layout {layout.packing}; convert the dataset that it was made from"
    elif layout.remask:
        found = "examples in Graphcore's remasked order; make the dataset without --remask"
    elif settings.to == ARROW:
        list_arrow_fields(find_objective(layout.objective), has_masks=True)
        return
    elif settings.to == FAIRSEQ:
        vocabulary = vocabulary_of(read_file_record(source.settings.tokenizer, source.vocabulary_path()))
        has_masks = source.settings.objective.get("masks", "unverified" not in source.settings.objective)
        return check_for_fairseq(layout.objective, path, has_masks, vocabulary)
    elif settings.to == MDS:
        return check_mds_source(source, path)
    else:
        return check_groups(f"{path}: {settings.to}", PAIRS, layout.objective, kind)
    raise DatasetError(f"{path}: holds {found}")


def _make_shards(
    job: ConversionJob,
    settings: ConversionSettings,
    pool: ProcessPool,
    workers: int,
    on_progress: ProgressCallback,
) -> list[ConvertedShard]:
    """Write the shards that no earlier run has finished. Return all shards, including the finished ones."""
    total = job.source.examples
    found = [shard for number in range(len(job.names)) if (shard := find_kept_shard(job, number)) is not None]
    done = sum(shard.examples for shard in found)
    for shard in found:
        on_progress(done, total, shard.line)
    there = {shard.number for shard in found}
    missing = [number for number in range(len(job.names)) if number not in there]
    if not missing:
        return found
    with ExitStack() as stack:
        if settings.shuffled:
            folder = stack.enter_context(choose_scratch_folder(job.dataset.directory))
            files: list[str] = []
            for run in pool.as_done(sort_examples, make_sort_tasks(job, folder)):
                on_progress(done, total, run.line)
                files += run.files
            files.sort()
            tasks: Any = [PermutedShardTask(job=job, number=number, files=tuple(files)) for number in missing]
            results = pool.as_done(write_permuted_shard, tasks)
        else:
            results = pool.as_done(write_consecutive_shards, make_chop_tasks(job, missing, workers))
        for made in results:
            for shard in made:
                done += shard.examples
                on_progress(done, total, shard.line)
            found += made
    return found
