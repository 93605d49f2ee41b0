"""The number of updates of a training that is asked for in epochs or in tokens."""

import math
from dataclasses import replace

from bertdata.config.settings import check
from bertdata.dataset.reader import OpenedDataset
from trainer.config.settings import Config
from trainer.run.plan_updates import plan_updates
from trainer.run.planned_updates import PlannedUpdates
from trainer.update.worker import Runtime


def count_updates(runtime: Runtime, config: Config, data: OpenedDataset) -> Config:
    """The configuration with the number of updates of its epochs or tokens, if it has any.

    SettingsError where the warm-up is longer.
    """
    epochs, update = config.schedule.num_train_epochs, config.update
    if not config.counts_updates:
        return config
    sizes = (update.batch_size, update.accumulation, update.global_batch_size, update.replicas)
    key = "train_tokens" if epochs is None else "num_train_epochs"
    check(
        any(sizes) or config.run.strategy == "replicated" or runtime.workers.size == 1,
        f"{key} needs batch_size or global_batch_size: a plan may choose the size of an update",
    )
    runtime = replace(runtime, config=config)
    planned = plan_updates(runtime, data)
    asked, updates = _asked(config, planned)
    steps = max(1, math.ceil(updates))
    last = "each" if type(planned) is PlannedUpdates else "the last"
    runtime.log(f"{asked}: {steps} updates, {last} of {planned.examples} examples")
    config.find_warmup(steps)
    return config.changed(steps=steps)


def _asked(config: Config, planned: PlannedUpdates) -> tuple[str, float]:
    """The training that is asked for, in words and as a number of updates."""
    course, epochs, data = (
        getattr(planned, "course", None),
        config.schedule.num_train_epochs,
        planned.rows.data,
    )
    if course and (tokens := config.recipe.train_tokens):
        return f"{tokens:,} tokens", course.first_update_after(tokens / course.tokens)
    assert epochs is not None
    passes = "1 epoch" if epochs == 1 else f"{epochs:g} epochs"
    if course:
        updates = data.examples * epochs / planned.examples
        updates = course.first_update_after(updates * planned.accumulation)
    else:
        updates = config.schedule.updates_of(epochs, data.examples, planned.examples)
    return f"{passes} of {data.examples} examples", updates
