"""Functions that find a task by its name, or by the objective of the training data."""

from collections.abc import Sequence

from bertdata.config.settings import require
from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import SettingsError
from bertdata.examples.objectives import find_objective, import_object
from trainer.config.settings import Config
from trainer.plugins import find
from trainer.tasks.task import RowLosses, Task


def find_task(name: str, config: Config, row_losses: RowLosses | None = None) -> Task:
    """Return the task with this name, with its configured settings.

    row_losses: the device's function for the masked-word loss, or None for the usual function.
    """
    return find_task_class(name).configured(config, row_losses)


def find_task_class(name: str) -> type[Task]:
    """Return the class of the task with this name. For ``package.module:CLASS``, return the user's class."""
    kind: type[Task] = import_object("task", name) if ":" in name else find("task", name)
    if ":" in name and (own := getattr(kind, "name", None)) != name:
        raise SettingsError(f"task {name!r}: its own name is {own!r}, expected the same")
    return kind


def find_data_task(data: Sequence[OpenedDataset]) -> str:
    """Return the name of the pre-training task that learns from these datasets.

    Raises SettingsError if the datasets need different tasks.
    """
    tasks = {find_objective_task(one.layout.objective, f"{one.name}: has the objective"): one for one in data}
    found = " and ".join(f"{one.name} by {name}" for name, one in tasks.items())
    require(len(tasks) == 1, f"one run learns one task, expected data for the same in both phases: {found}")
    return next(iter(tasks))


def find_objective_task(objective: str, found: str) -> str:
    """Return the name of the pre-training task for an objective.

    found: beginning of the message of the SettingsError that is raised if there is no such task.
    """
    name = find_objective(objective).task
    require(bool(name), f"{found} {objective}, which no task of the trainer learns")
    is_pretraining = not find_task_class(name).is_fine_tuned
    require(is_pretraining, f"{found} {objective}: that is learned by python -m trainer finetune")
    return name
