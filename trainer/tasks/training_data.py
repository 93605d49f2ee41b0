"""The training data of a run: a dataset, or examples that the task of the objective generates."""

from bertdata.dataset.reader import OpenedDataset
from bertdata.records import DEFAULT_OBJECTIVE
from trainer.config.settings import Config
from trainer.data.opening import open_configured, training_paths
from trainer.tasks.choice import task_class, task_of_objective


def generated_examples(config: Config) -> OpenedDataset:
    """The examples for ``--generated-data``. SettingsError for an objective that no task learns."""
    objective = config.data.objective or DEFAULT_OBJECTIVE
    return task_class(task_of_objective(objective, "generated data: has the objective")).generated(config)


def open_training_data(config: Config) -> OpenedDataset:
    """Return the configured training data, fit for the configuration."""
    paths = training_paths(config)
    return generated_examples(config) if paths is None else open_configured(config, paths)
