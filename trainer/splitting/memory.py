"""Find the memory of the devices, and test quickly whether the whole model surely fits on each of them."""

from trainer.config.settings import Config
from trainer.devices.device import Device
from trainer.workers.collective import Collective

_BYTES_A_WEIGHT = 16  # weight, gradient and two moments in fp32


_CERTAIN = 0.25  # a model surely fits if its weights and moments take less than this share of the memory


def surely_fits_whole(config: Config, device: Device, workers: Collective, parameters: int) -> bool:
    """Return True if a whole model with this many weights surely fits on the device.

    Also return True for devices that cannot train split models, because there the model is never split.
    """
    if device.strategy != "replicated":
        return True
    return _BYTES_A_WEIGHT * parameters < _CERTAIN * find_device_memory(config, device, workers)


def find_device_memory(config: Config, device: Device, workers: Collective) -> int:
    """Return the memory, in bytes, of the worker's device that has the least memory.

    Workers on processors share their machine's memory.
    """
    if (given := config.split.memory_bytes) is not None:
        return given
    # Each machine has one worker with local rank 0. Round up the number of workers per machine.
    machines = sum(rank == 0 for rank in workers.gather(workers.local_rank))
    neighbours = -(-workers.size // machines)
    return int(min(workers.gather(device.memory(neighbours))))
