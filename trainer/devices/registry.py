"""The configured device."""

from trainer.config.settings import Config
from trainer.devices.choice import choose_device, on_device
from trainer.devices.device import Device
from trainer.devices.examine import find_module
from trainer.registry import find


def find_device(config: Config, local_rank: int = 0) -> Device:
    """The configured device; where a machine has several, the one of that number.

    Its configuration names it, where the given one says "auto". SettingsError where it is not there.
    """
    config = on_device(config, choose_device(config).name)
    find_module(config.run.device)  # its error is about the device
    device: Device = find("device", config.run.device)(config, local_rank)
    return device
