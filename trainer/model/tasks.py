"""The known tasks by name."""

from trainer.config.finetuning import PRETRAINING, SQUAD
from trainer.config.settings import Config
from trainer.model.pretraining import Pretraining
from trainer.model.task import RowLosses, Task
from trainer.registry import find


def find_task(config: Config, row_losses: RowLosses | None = None) -> Task:
    """The configured task; row_losses: the device's own losses, where it has some."""
    name = config.finetuning.task
    if name == PRETRAINING:
        return Pretraining(row_losses)
    task: Task = find("task", SQUAD if name == SQUAD else "classification")(config)
    return task
