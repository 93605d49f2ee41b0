"""The choice between updates of one size and updates that grow."""

from bertdata.dataset.reader import OpenedDataset
from trainer.data.rows import find_rows
from trainer.run.growing import GrowingUpdates
from trainer.run.planned_updates import PlannedUpdates
from trainer.update.worker import Runtime


def plan_updates(runtime: Runtime, data: OpenedDataset) -> PlannedUpdates:
    """The configured updates of a phase. SettingsError where the data cannot have the configured rows."""
    rows, keys = find_rows(runtime.config, data), runtime.config.recipe
    if keys.batch_warmup_from or keys.train_tokens or keys.warmup_tokens:
        return GrowingUpdates(runtime, rows)
    return PlannedUpdates(runtime, rows)
