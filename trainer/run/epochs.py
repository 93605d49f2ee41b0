"""Conversion of the training's length from epochs or tokens to a number of updates."""

import math
from dataclasses import replace

from bertdata.config.settings import require
from bertdata.dataset.reader import OpenedDataset
from trainer.config.settings import Config
from trainer.run.plan_updates import plan_updates
from trainer.run.planned_updates import PlannedUpdates
from trainer.update.worker import Runtime


def count_updates(runtime: Runtime, config: Config, data: OpenedDataset) -> Config:
    """Return the configuration with its length in epochs or tokens converted to a number of updates.

    A configuration without epochs and tokens is returned unchanged. If a continued run changes the size of
    its updates, what remains of the training is counted in examples.
    Raises SettingsError if the warm-up is longer than the training.
    """
    epochs, update = config.schedule.num_train_epochs, config.update
    if not config.counts_updates:
        return config
    sizes = (update.batch_size, update.accumulation, update.global_batch_size, update.replicas)
    key = "train_tokens" if epochs is None else "num_train_epochs"
    require(
        any(sizes) or config.run.strategy == "replicated" or runtime.collective.size == 1,
        f"{key} needs batch_size or global_batch_size: a plan may choose the size of an update",
    )
    runtime = replace(runtime, config=config)
    planned = plan_updates(runtime, data)
    step, trained = 0, 0
    if config.start.is_continued:
        from trainer.run.start_point import find_progress

        step, trained = runtime.on_rank_0(lambda: find_progress(config))
    asked, updates = _count_configured_updates(config, planned, step, trained)
    steps = max(1, math.ceil(updates))
    last = "each" if type(planned) is PlannedUpdates else "the last"
    made = f"; {step} are made, of {trained} examples" if trained else ""
    runtime.log(f"{asked}: {steps} updates, {last} of {planned.examples} examples{made}")
    config.find_warmup(steps)
    return config.changed(steps=steps)


def _count_configured_updates(
    config: Config, planned: PlannedUpdates, step: int, trained: int
) -> tuple[str, float]:
    """Return the configured length of the training, in words and as a number of updates.

    step: number of updates that the run has already made.
    trained: number of examples that the run has already trained on.
    """
    # If all earlier updates had the size that they would have with the current settings, the run ends after
    # as many updates as it planned when it first started.
    is_other_size = trained != sum(planned.count_examples(update) for update in range(step))
    if not is_other_size:
        step, trained = 0, 0
    course, epochs, data = (
        getattr(planned, "course", None),
        config.schedule.num_train_epochs,
        planned.rows.data,
    )
    if course:
        # counted: difference between two numbers of micro-batches per copy for all earlier updates: according
        # to the current settings, minus the micro-batches that the run really made.
        counted = course.micro_batches_before(step) - trained / planned.examples * planned.accumulation
    if course and (tokens := config.recipe.train_tokens):
        wanted = max(counted + tokens / course.tokens, course.micro_batches_before(step))
        return f"{tokens:,} tokens", course.first_update_after(wanted)
    assert epochs is not None
    passes = "1 epoch" if epochs == 1 else f"{epochs:g} epochs"
    if course:
        updates = data.examples * epochs / planned.examples
        wanted = max(counted + updates * planned.accumulation, course.micro_batches_before(step))
        updates = course.first_update_after(wanted)
    else:
        updates = config.schedule.updates_of(
            epochs, data.examples, planned.examples, step=step, trained=trained
        )
    return f"{passes} of {data.examples} examples", updates
