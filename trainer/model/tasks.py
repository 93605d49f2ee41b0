"""The known tasks by name."""

from trainer.config.finetuning import PRETRAINING, SQUAD
from trainer.config.settings import Config
from trainer.devices.device import Device
from trainer.extensions.finetuning.classification.task import Classification
from trainer.model.pretraining import Pretraining
from trainer.extensions.finetuning.squad.task import Squad
from trainer.model.task import Task


def find_task(config: Config, device: Device) -> Task:
    """The configured task, with the device's own losses where it has some."""
    if config.finetuning.task == PRETRAINING:
        return Pretraining(device.row_losses)
    if config.finetuning.task == SQUAD:
        return Squad(config)
    return Classification(config)
