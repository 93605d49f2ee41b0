"""Choice between updates of equal size and updates that grow in a batch warm-up."""

from bertdata.dataset.reader import OpenedDataset
from trainer.data.rows import find_rows
from trainer.run.growing import GrowingUpdates
from trainer.run.planned_updates import PlannedUpdates
from trainer.update.worker import Runtime


def plan_updates(runtime: Runtime, data: OpenedDataset) -> PlannedUpdates:
    """Return the updates that the configuration asks for in this phase.

    Raises SettingsError if the data do not have the configured form of rows.
    """
    rows, keys = find_rows(runtime.config, data), runtime.config.recipe
    if keys.batch_warmup_from or keys.train_tokens or keys.warmup_tokens:
        return GrowingUpdates(runtime, rows)
    return PlannedUpdates(runtime, rows)
