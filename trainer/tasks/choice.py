"""The choice of the task by its name."""

from collections.abc import Sequence

from bertdata.config.settings import check
from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import SettingsError
from bertdata.examples.objectives import find_objective, load_own
from trainer.config.settings import Config
from trainer.plugins import find
from trainer.tasks.task import RowLosses, Task


def find_task(name: str, config: Config, row_losses: RowLosses | None = None) -> Task:
    """The task of that name (``task_class``). row_losses: the device's own losses, where it has some."""
    return task_class(name).configured(config, row_losses)


def task_class(name: str) -> type[Task]:
    """The class of the task of that name, or the one of one's own that package.module:CLASS names."""
    kind: type[Task] = load_own("task", name) if ":" in name else find("task", name)
    if ":" in name and (own := getattr(kind, "name", None)) != name:
        raise SettingsError(f"task {name!r}: its own name is {own!r}, expected the same")
    return kind


def task_of(data: Sequence[OpenedDataset]) -> str:
    """The task of pre-training that learns all of these datasets. SettingsError where there is none."""
    tasks = {task_of_objective(one.layout.objective, f"{one.name}: has the objective"): one for one in data}
    found = " and ".join(f"{one.name} by {name}" for name, one in tasks.items())
    check(len(tasks) == 1, f"one run learns one task, expected data for the same in both phases: {found}")
    return next(iter(tasks))


def task_of_objective(objective: str, found: str) -> str:
    """The task of pre-training that learns the objective.

    found: the beginning of a SettingsError where there is none.
    """
    name = find_objective(objective).task
    check(bool(name), f"{found} {objective}, which no task of the trainer learns")
    is_pretraining = not task_class(name).is_fine_tuned
    check(is_pretraining, f"{found} {objective}: that is learned by python -m trainer finetune")
    return name
