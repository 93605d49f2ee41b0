"""The known collectives by name."""

import os

from bertdata.errors import SettingsError
from trainer.collectives.collective import Collective
from trainer.collectives.launchers import (
    LAUNCHERS,
    VARIABLES,
    find_launcher,
    join_job,
    refuse_unknown_launchers,
)
from trainer.devices.device import Device
from trainer.registry import check_name, find


def find_collective(name: str | None, device: Device) -> Collective:
    """The collective of that name; None: that of the launcher which started this process.

    SettingsError for a launcher that is not known, because each process would train alone.
    """
    if name is None:
        name = find_launcher()
        if name == "single":
            refuse_unknown_launchers()
    check_name("collective", name)
    if name == "torch_distributed" and "RANK" not in os.environ:
        join_job()
    if missing := [variable for variable in VARIABLES.get(name, ()) if variable not in os.environ]:
        raise SettingsError(f"{name}: {missing[0]} is not set; start under {LAUNCHERS[name]}")
    if name not in device.collectives:
        remedy = f"start the workers with {LAUNCHERS[device.collectives[1]]}"
        raise SettingsError(f"{name}: not for device {device.name!r}; {remedy}")
    collective: Collective = find("collective", name)(device)
    return collective
