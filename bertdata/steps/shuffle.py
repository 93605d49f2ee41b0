"""Global shuffle in ``create``: the documents of all text parts are mixed into shards.

The documents of each part are first sorted by a random key into a file. Then each shard is gathered from
these files.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain

from bertdata.build.shard_task import TaskPlan, TaskResult, find_finished_result, run_task
from bertdata.build.shuffle.corpus import Corpus, divide_into_shards, make_corpus
from bertdata.build.shuffle.sorted_files import PartSortTask, SortResult, find_scratch_directory, sort_to_file
from bertdata.errors import InputError, SettingsError
from bertdata.io import storage
from bertdata.io.file_check import compute_file_md5
from bertdata.io.process_pool import ProcessPool
from bertdata.io.scratch_files import choose_scratch_folder, delete_scratch_files
from bertdata.steps.progress import OnProgress, StepProgress

SORTING = "sorting documents"
CREATING = "creating shards"


@dataclass(frozen=True, kw_only=True, slots=True)
class MadeShards:
    """The results of the tasks of a run, and warnings about the parts.

    corpus: all text parts as a single input, for a run that mixes them. None if each part has separate
        shards.
    """

    corpus: Corpus | None
    results: list[TaskResult]
    warnings: tuple[str, ...] = ()


def make_shuffled(
    plan: TaskPlan, parts: Sequence[str], shards: int, workers: int, progress: OnProgress
) -> MadeShards:
    """Create the shards of all parts together, or keep those of an earlier run.

    If the dataset is finished and its parts have not changed, nothing is sorted unless a shard is missing.
    """
    with ProcessPool(min(workers, max(len(parts), shards))) as pool, ExitStack() as stack:
        # Resume at three levels. A finished dataset lists its inputs, so its shards can be checked without
        # sorting anything. For an unfinished dataset, _sort_parts keeps the sorted files of an interrupted
        # run, and run_task keeps the shards that have a note.
        kept: dict[int, TaskResult] = {}
        if (listed := find_listed_corpus(plan, parts, pool)) is not None:
            kept = _find_kept_shards(plan, listed, shards, pool)
            if len(kept) == shards:
                return MadeShards(
                    corpus=listed, results=list(_report_each_shard(kept.values(), plan, shards, progress))
                )
        folder = stack.enter_context(choose_scratch_folder(find_scratch_directory(plan).directory))
        found = _sort_parts(plan, parts, folder, pool, progress)
        try:
            corpus = make_corpus(found)
            pieces = divide_into_shards([result.file for result in found if result.file is not None], shards)
        except (SettingsError, InputError):
            # The user must change settings or parts now. Without scratch files, the directory can be used for
            # the changed run.
            delete_scratch_files(find_scratch_directory(plan))
            raise
        entry = corpus.entry
        tasks = [
            plan.make_shuffled_task(number, shards, entry, pieces[number])
            for number in range(shards)
            if number not in kept
        ]
        results = chain(kept.values(), pool.as_done(run_task, tasks))
        return MadeShards(
            corpus=corpus,
            results=list(_report_each_shard(results, plan, shards, progress)),
            warnings=tuple(warning for result in found for warning in result.warnings),
        )


def find_listed_corpus(plan: TaskPlan, parts: Sequence[str], pool: ProcessPool) -> Corpus | None:
    """Return the inputs listed in a finished dataset's manifest if the parts are still the same.

    Returns None if the dataset is not finished or a part has changed.
    """
    manifests = (target.dataset.read_manifest() for target in plan.targets)
    manifest = next((found for found in manifests if found is not None), None)
    if manifest is None or (manifest.skipped and not plan.skip_bad):
        return None
    corpus = Corpus(inputs=manifest.inputs, skipped=manifest.skipped)
    names = [plan.make_reader(part).name for part in parts]
    md5s = (md5 for _, md5 in pool.in_order(compute_file_md5, parts))
    return corpus if dict(zip(names, md5s, strict=True)) == corpus.md5s else None


def _find_kept_shards(
    plan: TaskPlan, corpus: Corpus, shards: int, pool: ProcessPool
) -> dict[int, TaskResult]:
    """Return the results of the shards that an earlier run finished, by number."""
    entry = corpus.entry
    tasks = [plan.make_shuffled_task(number, shards, entry) for number in range(shards)]
    found = enumerate(result for _, result in pool.in_order(find_finished_result, tasks))
    return {number: result for number, result in found if result is not None}


def _sort_parts(
    plan: TaskPlan, parts: Sequence[str], folder: str | None, pool: ProcessPool, progress: OnProgress
) -> list[SortResult]:
    """Sort the parts into files.

    The largest parts come first, so that all workers finish at about the same time.
    """
    sizes = dict(zip(parts, storage.map_paths(list(parts), storage.read_size), strict=True))
    total, done = sum(sizes.values()), 0
    progress(StepProgress(stage=SORTING, done=0, total=total))
    largest_first = sorted(parts, key=lambda part: -sizes[part])
    tasks = [PartSortTask(plan=plan, part=part, folder=folder) for part in largest_first]
    results = []
    for result in pool.as_done(sort_to_file, tasks):
        done += result.entry.bytes
        progress(
            StepProgress(
                stage=SORTING, done=done, total=total, finished=result.line, warnings=result.warnings
            )
        )
        results.append(result)
    return results


def _report_each_shard(
    results: Iterable[TaskResult], plan: TaskPlan, shards: int, progress: OnProgress
) -> Iterator[TaskResult]:
    """Yield the results of the tasks, after reporting each result to ``progress``."""
    total, done, tokens = shards * len(plan.targets), 0, 0

    def report_shards(line: str) -> None:
        progress(
            StepProgress(
                stage=CREATING,
                done=done,
                total=total,
                unit="shards",
                finished=line,
                shards=done,
                all_shards=total,
                tokens=tokens,
            )
        )

    report_shards("")
    for result in results:
        done += len(result.shards)
        tokens += sum(shard.tokens for shard in result.shards) if not result.kept else 0
        report_shards(result.line)
        yield result
