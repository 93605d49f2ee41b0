"""Choice of the device: an available accelerator, otherwise the processor. Works without torch."""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import NamedTuple

from bertdata.errors import SettingsError, install_extra
from trainer.config.settings import Config
from trainer.devices.availability import Availability
from trainer.plugins import check_name, find, list_names

AUTO = "auto"
PROCESSOR = "cpu"
DEVICES = tuple(list_names("device"))

ACCELERATORS = {"cuda": "torch", "hpu": "habana_frameworks", "ipu": "poptorch", "xla": "torch_xla"}
"""Accelerators in the order of choice, each with the package that it needs."""


class ChosenDevice(NamedTuple):
    """A device's name and, for the processor, the reason why no accelerator was chosen."""

    name: str
    reason: str = ""


def choose_device(config: Config) -> ChosenDevice:
    """Return the configured device. For "auto", return the first available accelerator without opening it.

    All workers of a machine make the same choice. Accelerators whose package is not installed take no time.
    """
    if config.run.device != AUTO:
        return ChosenDevice(config.run.device)
    reasons = []
    for name, package in ACCELERATORS.items():
        if find_spec(package) is None:
            continue
        finding = look_for(name, config)
        if finding.there:
            return ChosenDevice(name)
        reasons.append(f"{finding.found}{finding.missing and f' ({finding.missing})'}")
    return ChosenDevice(PROCESSOR, f"no accelerator is there: {'; '.join(reasons)}")


def look_for(name: str, config: Config) -> Availability:
    """Return whether a run with this configuration could use the accelerator.

    If its packages raise an error, it counts as missing. Raises SettingsError for contradictory settings.
    """
    try:
        module = import_device_module(name)
    except SettingsError as error:
        return Availability(name, False, str(error))
    try:
        look = getattr(module, "look_for", None)
        finding: Availability = look(config) if look else _examine_module(name)
    except SettingsError:
        raise
    except Exception as error:  # a fault in the packages of one device must not end a run on another device
        return _report_failure(name, error)
    return finding


def examine_device(name: str) -> Availability:
    """Return whether this machine has the device, without opening the device.

    Raises SettingsError for an unknown name.
    """
    check_name("device", name)
    if find_spec("torch") is None:
        return report_missing_torch(name)
    try:
        finding = _examine_module(name)
    except SettingsError as error:
        return Availability(name, False, str(error))
    except Exception as error:  # a fault in the packages of one device must not hide the other devices
        return _report_failure(name, error)
    return finding


def _examine_module(name: str) -> Availability:
    """Return whether this machine has the device. Its module must be importable."""
    return examine_cpu() if name == PROCESSOR else import_device_module(name).examine()


def examine_cpu() -> Availability:
    """Describe PyTorch's kernels for this processor, which is always available."""

    import torch

    _, _, shown = torch.__config__.show().partition("CPU capability usage: ")
    kernels = f"torch {torch.__version__} with {shown.partition(chr(10))[0]} kernels"
    products = "oneDNN" if torch.backends.mkldnn.is_available() else "no oneDNN"  # type: ignore[no-untyped-call]
    fast = getattr(torch.cpu, "_is_avx512_bf16_supported", bool)()
    bf16 = f"bf16 {'' if fast else 'not '}in hardware"
    return Availability("cpu", True, f"{kernels}, {products}, fused attention; {bf16}")


def import_device_module(name: str) -> ModuleType:
    """Import the device's module. Raises SettingsError for an unknown name, or if torch is too old for it."""
    try:
        return import_module(find("device", name).__module__)
    # only this project's modules are imported here, so the fault is torch's version; vendors' packages come
    # later
    except (ImportError, AttributeError) as error:
        raise make_too_old_error(name, error) from error


def make_too_old_error(name: str, error: Exception) -> SettingsError:
    """Return the error for a device whose module needs a newer torch than the installed one."""

    import torch

    needs = f"needs a part that torch {torch.__version__} lacks ({error})"
    return SettingsError(f"device {name!r} {needs}; install a newer torch")


def report_missing_torch(name: str) -> Availability:
    """Return the ``Availability`` of a device or package that is missing because torch is not installed."""
    return Availability(name, False, "torch is not installed", install_extra("train"))


def _report_failure(name: str, error: Exception) -> Availability:
    """Return the ``Availability`` of a device that is missing because its packages raise an error."""
    return Availability(name, False, f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
