"""The known devices, and what doctor finds of each; works without torch."""

from importlib.util import find_spec
from types import ModuleType

from bertdata.errors import SettingsError
from trainer import registry
from trainer.devices.availability import Availability, without_torch

DEVICES = tuple(registry.NAMES["device"])


def examine_device(name: str) -> Availability:
    """The device as found on this machine, without opening it; SettingsError for an unknown name."""
    registry.check_name("device", name)
    if find_spec("torch") is None:
        return without_torch(name)
    try:
        finding: Availability = find_module(name).examine()
    except SettingsError as error:
        return Availability(name, False, str(error))
    except Exception as error:  # a fault in one device's packages must not hide the other devices
        return Availability(name, False, f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
    return finding


def find_module(name: str) -> ModuleType:
    """The device's module; SettingsError for an unknown name, and where torch is too old for it."""
    try:
        return registry.find_module("device", name)
    except (ImportError, AttributeError) as error:  # a vendor's packages are imported later
        import torch

        needs = f"needs a part that torch {torch.__version__} lacks ({error})"
        raise SettingsError(f"device {name!r} {needs}; install a newer torch") from error
