"""Generated examples, as the task of the configured objective makes them."""

from bertdata.dataset.reader import OpenedDataset
from bertdata.records import DEFAULT_OBJECTIVE
from trainer.config.settings import Config
from trainer.tasks.task import find_kind, task_of_objective


def generated_examples(config: Config) -> OpenedDataset:
    """The examples for ``--generated-data``. SettingsError for an objective that no task learns."""
    objective = config.data.objective or DEFAULT_OBJECTIVE
    return find_kind(task_of_objective(objective, "generated data: has the objective")).generated(config)
