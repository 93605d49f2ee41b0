"""Choice of the device: an accelerator if this machine has one, otherwise the CPU. Works without torch."""

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
"""The accelerators that ``--device auto`` looks for, in this order, each with the package that it needs."""


class ChosenDevice(NamedTuple):
    """The name of the chosen device. If it is the CPU, also the reason why no accelerator was chosen."""

    name: str
    reason: str = ""


def choose_device(config: Config) -> ChosenDevice:
    """Return the configured device. For "auto", return the first accelerator that this machine has.

    The accelerator is not opened. All workers of a machine make the same choice. An accelerator whose package
    is not installed is skipped without loading anything.
    """
    if config.run.device != AUTO:
        return ChosenDevice(config.run.device)
    reasons = []
    for name, package in ACCELERATORS.items():
        if find_spec(package) is None:
            continue
        finding = examine_for_run(name, config)
        if finding.there:
            return ChosenDevice(name)
        reasons.append(f"{finding.found}{finding.missing and f' ({finding.missing})'}")
    return ChosenDevice(PROCESSOR, f"no accelerator is there: {'; '.join(reasons)}")


def examine_for_run(name: str, config: Config) -> Availability:
    """Return whether a run with this configuration could use the accelerator.

    If importing its packages raises an error, it counts as missing. Raises SettingsError for settings that
    contradict each other.
    """
    try:
        module = import_device_module(name)
    except SettingsError as error:
        return Availability(name, False, str(error))
    try:
        look = getattr(module, "examine_for_run", None)
        finding: Availability = look(config) if look else _examine_module(name)
    except SettingsError:
        raise
    except Exception as error:  # broken packages of one device must not end a run on another device
        return _report_failure(name, error)
    return finding


def examine_device(name: str) -> Availability:
    """Return whether this machine has the device, without opening it.

    Raises SettingsError for an unknown name.
    """
    check_name("device", name)
    if find_spec("torch") is None:
        return report_missing_torch(name)
    try:
        finding = _examine_module(name)
    except SettingsError as error:
        return Availability(name, False, str(error))
    except Exception as error:  # broken packages of one device must not hide the other devices
        return _report_failure(name, error)
    return finding


def _examine_module(name: str) -> Availability:
    """Import the device's adapter module, and return what the module finds on this machine."""
    return examine_cpu() if name == PROCESSOR else import_device_module(name).examine()


def examine_cpu() -> Availability:
    """Return the availability of the CPU (always available), with the instruction set that PyTorch uses on
    it.
    """

    import torch

    _, _, shown = torch.__config__.show().partition("CPU capability usage: ")
    kernels = f"torch {torch.__version__} with {shown.partition(chr(10))[0]} kernels"
    products = "oneDNN" if torch.backends.mkldnn.is_available() else "no oneDNN"  # type: ignore[no-untyped-call]
    fast = getattr(torch.cpu, "_is_avx512_bf16_supported", bool)()
    bf16 = f"bf16 {'' if fast else 'not '}in hardware"
    return Availability("cpu", True, f"{kernels}, {products}, fused attention; {bf16}")


def import_device_module(name: str) -> ModuleType:
    """Import and return the adapter module of a device, for example ``trainer.devices.cuda``.

    Raises SettingsError for an unknown name, or if the installed torch is too old for the module.
    """
    try:
        return import_module(find("device", name).__module__)
    # Only modules of this project are imported here (vendors' packages are imported later), so an error means
    # that torch is too old.
    except (ImportError, AttributeError) as error:
        raise make_too_old_error(name, error) from error


def make_too_old_error(name: str, error: Exception) -> SettingsError:
    """Return the error for a device whose module needs a newer torch than the installed one."""

    import torch

    needs = f"needs a part that torch {torch.__version__} lacks ({error})"
    return SettingsError(f"device {name!r} {needs}; install a newer torch")


def report_missing_torch(name: str) -> Availability:
    """Return the availability of a device that cannot be used because torch is not installed."""
    return Availability(name, False, "torch is not installed", install_extra("train"))


def _report_failure(name: str, error: Exception) -> Availability:
    """Return the availability of a device that cannot be used because its packages raise an error."""
    return Availability(name, False, f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
