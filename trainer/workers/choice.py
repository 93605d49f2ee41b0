"""Choice of the collective, through which the workers of a run exchange data."""

from trainer.devices.device import Device
from trainer.plugins import find
from trainer.workers.collective import Collective
from trainer.workers.job_launchers import refuse_unknown_launchers
from trainer.workers.launchers import find_launcher, is_in_job


def find_collective(name: str | None, device: Device) -> Collective:
    """Return the collective (the communication between the workers) with this name.

    name: None for the collective that suits the launcher of this process.
    Raises SettingsError under an unknown launcher, because each process would train alone.
    """
    if name is None:
        name = find_launcher()
        if name == "single" and is_in_job():
            refuse_unknown_launchers()
    kind: type[Collective] = find("collective", name)
    kind.check(device)
    return kind(device)
