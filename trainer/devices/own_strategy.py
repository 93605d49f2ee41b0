"""Devices that have a strategy of their own, where another one is asked for."""

from bertdata.errors import SettingsError
from trainer.devices.device import Device
from trainer.registry import is_name


def check_strategy(asked: str, device: Device) -> None:
    """SettingsError where the device cannot train with the configured strategy."""
    own = device.strategy
    if asked not in ("auto", own) and (own != "replicated" or not is_name("strategy", asked)):
        found = f"device {device.name!r} has a strategy of its own ({own})"
        raise SettingsError(f"strategy is {asked}, but {found}; leave --strategy out")
