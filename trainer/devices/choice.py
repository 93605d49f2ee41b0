"""The device of ``--device auto``: the accelerator that is there, else the processor."""

from importlib.util import find_spec
from typing import NamedTuple

from bertdata.errors import SettingsError
from trainer.config.settings import Config
from trainer.devices.availability import Availability
from trainer.devices.examine import find_module

AUTO = "auto"
PROCESSOR = "cpu"

ACCELERATORS = {"cuda": "torch", "hpu": "habana_frameworks", "ipu": "poptorch", "xla": "torch_xla"}
"""The accelerators in the order of choice, each with the package that it needs."""


class ChosenDevice(NamedTuple):
    """A device's name; where it is the processor, the reason why no accelerator was chosen."""

    name: str
    reason: str = ""


def choose_device(config: Config) -> ChosenDevice:
    """The configured device; of "auto" the first accelerator that is there, none of which is opened.

    All workers of a machine choose alike. An accelerator without its package takes no time.
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


def on_device(config: Config, name: str) -> Config:
    """The configuration with the device of that name in the place of "auto"."""
    return config if config.run.device != AUTO else config.changed(device=name)


def look_for(name: str, config: Config) -> Availability:
    """The accelerator as a run of this configuration finds it; one whose packages fail is not there.

    SettingsError for keys that contradict each other.
    """
    try:
        module = find_module(name)
    except SettingsError as error:
        return Availability(name, False, str(error))
    try:
        look = getattr(module, "look_for", None)
        finding: Availability = look(config) if look else module.examine()
    except SettingsError:
        raise
    except Exception as error:  # a fault in one device's packages must not end a run on another
        return Availability(name, False, f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
    return finding
