"""The step that counts a dataset's examples, tokens and masks."""

from functools import partial

from bertdata.dataset.discover import FoundDataset, FoundShard, find_datasets
from bertdata.dataset.vocabulary import load_dataset_vocabulary
from bertdata.examples.objectives import find_objective
from bertdata.io.outputs import check_output, find_picture_format
from bertdata.io.process_pool import run_all
from bertdata.reports.charts.drawing import check_picture, write_picture
from bertdata.reports.lengths_chart import make_lengths_picture
from bertdata.reports.shard_counts import ShardCounts
from bertdata.reports.summary import Statistics, count_checked_shard
from bertdata.steps.progress import (
    GivenProgress,
    OnProgress,
    StepProgress,
    add_warnings_first,
    choose_progress,
)
from bertdata.steps.values import AnyPath, convert_optional_path, convert_path, count_workers

STAGE = "counting"


def stats(
    path: AnyPath,
    *,
    vocab: AnyPath | None = None,
    picture: AnyPath | None = None,
    overwrite: bool = False,
    objective: str | None = None,
    workers: int | None = None,
    progress: GivenProgress = None,
) -> list[Statistics]:
    """Return the statistics of the datasets in a directory, as ``bertdata stats`` prints them.

    ``bertdata stats --json`` prints the ``as_json`` of each element. Raises ShardError for a damaged record.

    path: dataset directory or a single shard.
    vocab: vocabulary of shards that another tool wrote.
    picture: .svg or .png file to write, with the distribution of lengths.
    overwrite: replace an existing file that is not a picture.
    objective: name of a user-defined objective that the examples have.
    workers: number of processes. None: one per core.
    progress: function called with a StepProgress.
    """
    processes, drawn, given = (
        count_workers(workers),
        convert_optional_path(picture),
        convert_optional_path(vocab),
    )
    if drawn is not None:
        check_picture(drawn)
        check_output(drawn, [convert_path(path), given], find_picture_format(drawn), overwrite=overwrite)
    if objective is not None:
        find_objective(objective)
    datasets = find_datasets(convert_path(path), objective=objective)
    mask_ids = [_find_mask_id(given, dataset) for dataset in datasets]
    notes = tuple(note for dataset in datasets for note in dataset.notes)
    counts = _count_all_datasets(
        datasets, processes, objective, add_warnings_first(notes, choose_progress(progress))
    )
    found = [
        Statistics(dataset, [counts[shard.path] for shard in dataset.shards], mask_id)
        for dataset, mask_id in zip(datasets, mask_ids, strict=True)
    ]
    if drawn is not None:
        write_picture(drawn, [make_lengths_picture(one) for one in found])
    return found


def _find_mask_id(vocab: str | None, dataset: FoundDataset) -> int | None:
    """Return the id of the mask token. Returns None if the vocabulary is not known."""
    vocabulary = load_dataset_vocabulary(vocab, dataset)
    return vocabulary.mask if vocabulary else None


def _count_all_datasets(
    datasets: list[FoundDataset], workers: int, objective: str | None, progress: OnProgress
) -> dict[str, ShardCounts]:
    """Return the counts of all shards by path.

    The largest shards come first, so that all workers finish at about the same time.
    """
    shards = sorted(
        (shard for dataset in datasets for shard in dataset.shards), key=lambda shard: -shard.bytes
    )
    counts = {}
    done, total = 0, sum(shard.bytes for shard in shards)
    progress(StepProgress(stage=STAGE, done=0, total=total))
    for path, found in run_all(partial(_count_shard, objective), shards, workers):
        done += found.bytes
        line = f"counted {found.name} ({found.examples} examples)"
        progress(StepProgress(stage=STAGE, done=done, total=total, finished=line))
        counts[path] = found
    return counts


def _count_shard(objective: str | None, shard: FoundShard) -> tuple[str, ShardCounts]:
    """Count a shard's examples, and return its path with the counts."""
    if objective is not None:
        # This imports the module that defines the objective. A worker that was spawned has not imported it
        # yet.
        find_objective(objective)
    return shard.path, count_checked_shard(shard)
