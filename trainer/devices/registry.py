"""The configured device."""

from trainer.config.settings import Config
from trainer.devices.device import Device
from trainer.devices.examine import DEVICES, find_module


def find_device(config: Config, local_rank: int = 0) -> Device:
    """The configured device; where a machine has several, the one of that number.

    SettingsError where it is not there.
    """
    kind = getattr(find_module(config.run.device), DEVICES[config.run.device][1])
    device: Device = kind(config, local_rank)
    return device
