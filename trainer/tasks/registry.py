"""The known tasks by name."""

from bertdata.errors import SettingsError
from trainer.devices.device import Device
from trainer.tasks.pretraining import Pretraining
from trainer.tasks.task import Task

TASKS = {"pretraining": Pretraining}


def find_task(name: str, device: Device) -> Task:
    """The task of that name, with the device's own losses where it has some."""
    if name not in TASKS:
        raise SettingsError(f"task {name!r}: no such task; known are {', '.join(TASKS)}")
    return TASKS[name](device.row_losses)
