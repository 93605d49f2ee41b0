"""The configured device, opened."""

from trainer.config.settings import Config
from trainer.devices.device import Device
from trainer.plugins import find


def find_device(config: Config, local_rank: int = 0) -> Device:
    """The configured device. Where a machine has several, the one of that number.

    Its configuration names it, where the given one says "auto". SettingsError where it is not there.
    """
    if config.run.device == "auto":
        from trainer.devices.choice import choose_device

        config = on_device(config, choose_device(config).name)
    try:
        device: Device = find("device", config.run.device)(config, local_rank)
    except (ImportError, AttributeError) as error:  # a vendor's packages are imported later
        from trainer.devices.choice import too_old

        raise too_old(config.run.device, error) from error
    return device


def on_device(config: Config, name: str) -> Config:
    """The configuration with the device of that name in the place of "auto"."""
    return config.changed(device=name) if config.run.device == "auto" else config
