"""The number of updates of a training that is asked for in epochs."""

import math
from dataclasses import replace

from bertdata.dataset.reader import OpenedDataset
from trainer.config.section import check
from trainer.config.settings import Config
from trainer.run.runtime import Runtime


def count_updates(runtime: Runtime, config: Config, data: OpenedDataset) -> Config:
    """The configuration with the number of updates of its epochs, if it has any.

    SettingsError where the warm-up is longer.
    """
    epochs, update = config.schedule.num_train_epochs, config.update
    if epochs is None:
        return config
    sizes = (update.batch_size, update.accumulation, update.global_batch_size, update.replicas)
    check(
        any(sizes) or config.run.strategy == "replicated" or runtime.workers.size == 1,
        "num_train_epochs needs batch_size or global_batch_size: a plan may choose the size of an update",
    )
    rows = replace(runtime, config=config).rows(data)
    examples = update.examples(runtime.copies, rows.examples_per_row)
    steps = max(1, math.ceil(data.examples * epochs / examples))
    passes = "1 epoch" if epochs == 1 else f"{epochs:g} epochs"
    runtime.log(f"{passes} of {data.examples} examples: {steps} updates, each of {examples} examples")
    config.find_warmup(steps)
    return config.changed(steps=steps)
