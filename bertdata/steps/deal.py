"""Sentence parts to the files of a whole run, as a program's one process would write them."""

from collections.abc import Sequence

from bertdata.build.deal import deal_run, load_input
from bertdata.build.task import TaskPlan, TaskResult, keep_task
from bertdata.io import storage
from bertdata.io.process_pool import ProcessPool
from bertdata.steps.progress import OnProgress, StepProgress
from bertdata.steps.shuffle import CREATING, MadeShards, listed_corpus


def make_dealt(plan: TaskPlan, parts: Sequence[str], workers: int, progress: OnProgress) -> MadeShards:
    """Make the files of the run, all or none. Those of a finished run on the same parts are kept."""
    [target] = plan.targets
    with ProcessPool(min(workers, len(parts))) as pool:
        if (listed := listed_corpus(plan, parts, pool)) is not None:
            kept = keep_task(plan.of_run(listed.entry, parts))
            if kept is not None:
                return MadeShards(corpus=listed, results=[kept])
        sizes = dict(zip(parts, storage.each(list(parts), storage.size), strict=True))
        total, done = sum(sizes.values()), 0
        progress(StepProgress(stage=CREATING, done=0, total=total))

        def tell(part: str, examples: int) -> None:
            nonlocal done
            done += sizes[part]
            finished = f"dealt {storage.base_name(part)} ({examples} examples)"
            progress(StepProgress(stage=CREATING, done=done, total=total, finished=finished))

        found, shards = deal_run(plan, target, parts, lambda tasks: pool.in_order(load_input, tasks), tell)
    corpus = found.corpus
    result = TaskResult(entries=((corpus.entry, shards),))
    return MadeShards(corpus=corpus, results=[result], warnings=tuple(found.warnings))
