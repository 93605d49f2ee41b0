"""The known tasks by name."""

from trainer.config.section import PRETRAINING
from trainer.config.settings import Config
from trainer.model.pretraining import Pretraining
from trainer.model.task import RowLosses, Task
from trainer.registry import find


def find_task(config: Config, row_losses: RowLosses | None = None) -> Task:
    """The configured task; row_losses: the device's own losses, where it has some."""
    if config.task == PRETRAINING:
        return Pretraining(row_losses)
    task: Task = find("task", "squad" if config.task == "squad" else "classification")(config)
    return task
