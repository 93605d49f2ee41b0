"""Memory of the devices, and a quick test whether a whole model surely fits."""

from trainer.config.settings import Config
from trainer.devices.device import Device
from trainer.workers.collective import Collective

_BYTES_A_WEIGHT = 16  # weight, gradient and two moments in fp32


_CERTAIN = 0.25  # share of the memory below which weights and state fit without further calculation


def surely_fits_whole(config: Config, device: Device, workers: Collective, parameters: int) -> bool:
    """Return True if a whole model with this many weights surely fits on the device.

    Also return True for devices that only take whole models.
    """
    if device.strategy != "replicated":
        return True
    return _BYTES_A_WEIGHT * parameters < _CERTAIN * find_device_memory(config, device, workers)


def find_device_memory(config: Config, device: Device, workers: Collective) -> int:
    """Return the bytes of the smallest device of all workers.

    Workers on processors share their machine's memory.
    """
    if (given := config.split.memory_bytes) is not None:
        return given
    # Each machine has one worker with local rank 0. Round up the number of workers per machine.
    machines = sum(rank == 0 for rank in workers.gather(workers.local_rank))
    neighbours = -(-workers.size // machines)
    return int(min(workers.gather(device.memory(neighbours))))
