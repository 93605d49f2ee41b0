"""The known collectives by name."""

import os
from importlib import import_module

from bertdata.errors import SettingsError
from trainer.collectives.collective import Collective
from trainer.extensions.launchers.job_launchers import join_environment, refuse_unknown_launchers
from trainer.collectives.launchers import LAUNCHERS, VARIABLES, find_launcher
from trainer.devices.device import Device

COLLECTIVES = {
    "horovod": "Horovod",
    "torch_distributed": "TorchDistributed",
    "poprun": "Poprun",
    "single": "Single",
}
"""The class of each collective, in the module of that name."""


def find_collective(name: str | None, device: Device) -> Collective:
    """The collective of that name; None: that of the launcher which started this process.

    SettingsError for a launcher that is not known, because each process would train alone.
    """
    if name is None:
        name = find_launcher()
        if name == "single":
            refuse_unknown_launchers()
    if name not in COLLECTIVES:
        known = ", ".join(COLLECTIVES)
        raise SettingsError(f"collective {name!r}: no such collective; known are {known}")
    if name == "torch_distributed" and "RANK" not in os.environ:
        join_environment()
    if missing := [variable for variable in VARIABLES.get(name, ()) if variable not in os.environ]:
        raise SettingsError(f"{name}: {missing[0]} is not set; start under {LAUNCHERS[name]}")
    if name not in device.collectives:
        remedy = f"start the workers with {LAUNCHERS[device.collectives[1]]}"
        raise SettingsError(f"{name}: not for device {device.name!r}; {remedy}")
    kind = getattr(import_module(f"trainer.collectives.{name}"), COLLECTIVES[name])
    collective: Collective = kind(device)
    return collective
