"""The known devices by name."""

from importlib import import_module
from types import ModuleType

import torch

from bertdata.errors import SettingsError
from trainer.collectives.launchers import find_local_rank
from trainer.config import Config
from trainer.devices.availability import Availability
from trainer.devices.device import Device

DEVICES = {
    "cpu": ("cpu", "Cpu"),
    "cuda": ("cuda", "Cuda"),
    "hpu": ("hpu", "Hpu"),
    "ipu": ("ipu.device", "Ipu"),
    "xla": ("xla", "Xla"),
}
"""The module of each device, below this package, and its class there."""


def find_device(config: Config) -> Device:
    """The configured device; where a machine has several, the one of this worker's local rank.

    SettingsError where it is not there.
    """
    kind = getattr(_module(config.device), DEVICES[config.device][1])
    device: Device = kind(config, find_local_rank())
    return device


def examine_device(name: str) -> Availability:
    """The device as found on this machine, without opening it; SettingsError for an unknown name."""
    _check(name)
    try:
        finding: Availability = _module(name).examine()
    except Exception as error:  # a fault in one device's packages must not hide the other devices
        return Availability(name, False, f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
    return finding


def _check(name: str) -> None:
    if name not in DEVICES:
        raise SettingsError(f"device {name!r}: no such device; known are {', '.join(DEVICES)}")


def _module(name: str) -> ModuleType:
    _check(name)
    try:
        return import_module(f"trainer.devices.{DEVICES[name][0]}")
    except (ImportError, AttributeError) as error:  # a vendor's packages are imported later
        needs = f"needs a part that torch {torch.__version__} lacks ({error})"
        raise SettingsError(f"device {name!r} {needs}; install a newer torch") from error
