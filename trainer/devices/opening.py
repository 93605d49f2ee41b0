"""Opening of the configured device."""

from trainer.config.settings import Config
from trainer.devices.device import Device
from trainer.plugins import find


def find_device(config: Config, local_rank: int = 0) -> Device:
    """Open the configured device and return it. Raises SettingsError if the machine does not have it.

    In the configuration that the device keeps, its real name replaces "auto".
    local_rank: number of the device on this machine.
    """
    if config.run.device == "auto":
        from trainer.devices.choice import choose_device

        config = set_device(config, choose_device(config).name)
    try:
        device: Device = find("device", config.run.device)(config, local_rank)
    # Vendors' packages are imported later, so an error here means that torch is too old for this project's
    # module.
    except (ImportError, AttributeError) as error:
        from trainer.devices.choice import make_too_old_error

        raise make_too_old_error(config.run.device, error) from error
    return device


def set_device(config: Config, name: str) -> Config:
    """Return the configuration with this name as ``device`` if the key is "auto", otherwise unchanged."""
    return config.changed(device=name) if config.run.device == "auto" else config
