"""The known devices, and what doctor finds of each; works without torch."""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from bertdata.errors import SettingsError
from trainer.devices.availability import Availability, without_torch

DEVICES = {
    "cpu": ("cpu", "Cpu"),
    "cuda": ("cuda", "Cuda"),
    "hpu": ("hpu", "Hpu"),
    "ipu": ("ipu.device", "Ipu"),
    "xla": ("xla", "Xla"),
}
"""The module of each device, below this package, and its class there."""


def examine_device(name: str) -> Availability:
    """The device as found on this machine, without opening it; SettingsError for an unknown name."""
    _check(name)
    if find_spec("torch") is None:
        return without_torch(name)
    try:
        finding: Availability = find_module(name).examine()
    except Exception as error:  # a fault in one device's packages must not hide the other devices
        return Availability(name, False, f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
    return finding


def find_module(name: str) -> ModuleType:
    """The device's module; SettingsError for an unknown name, and where torch is too old for it."""
    _check(name)
    try:
        return import_module(f"trainer.devices.{DEVICES[name][0]}")
    except (ImportError, AttributeError) as error:  # a vendor's packages are imported later
        import torch

        needs = f"needs a part that torch {torch.__version__} lacks ({error})"
        raise SettingsError(f"device {name!r} {needs}; install a newer torch") from error


def _check(name: str) -> None:
    if name not in DEVICES:
        raise SettingsError(f"device {name!r}: no such device; known are {', '.join(DEVICES)}")
