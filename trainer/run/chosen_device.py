"""Opening of the device that ``--device auto`` chooses, with a line about the choice in the log."""

from bertdata.io.terminal import say_error
from trainer.config.settings import Config
from trainer.devices.choice import choose_device
from trainer.devices.device import Device
from trainer.devices.opening import find_device, set_device
from trainer.workers.launchers import find_local_rank, find_rank


def open_chosen_device(config: Config) -> Device:
    """Open and return the device. With "auto", rank 0 logs which one was chosen, or why it is not an
    accelerator.
    """
    chosen, reason = choose_device(config)
    device = find_device(set_device(config, chosen), find_local_rank())
    if find_rank()[0] == 0:
        name, _, about = device.describe().partition(": ")
        words = f"{chosen}, since {reason}" if reason else f"{name} ({about})"
        say_error(f"trainer: device auto: {words}")
    return device
