"""Functions that find the memory of the devices, and tell quickly whether the whole model surely
fits on each device.
"""

from trainer.config.settings import Config
from trainer.devices.device import Device
from trainer.workers.collective import Collective

_BYTES_A_WEIGHT = 16  # weight, gradient and two moments in fp32


_CERTAIN = 0.25  # a model surely fits if its weights and moments take less than this share of the memory


def surely_fits_whole(config: Config, device: Device, workers: Collective, parameters: int) -> bool:
    """Return True if a whole model with this number of weights surely fits on the device.

    The result is also True for devices that cannot train split models, since there a model is never split.
    parameters: number of the model's weights.
    """
    if device.strategy != "replicated":
        return True
    return _BYTES_A_WEIGHT * parameters < _CERTAIN * find_device_memory(config, device, workers)


def find_device_memory(config: Config, device: Device, workers: Collective) -> int:
    """Return the memory in bytes of the device with the least memory among all workers' devices.

    Workers that compute on processors share the memory of their machine, so each counts with its share.
    """
    if (given := config.split.memory_bytes) is not None:
        return given
    # Each machine has exactly one worker with local rank 0, so counting these workers counts the machines.
    # The number of workers per machine is rounded up.
    machines = sum(rank == 0 for rank in workers.gather(workers.local_rank))
    neighbours = -(-workers.size // machines)
    return int(min(workers.gather(device.memory(neighbours))))
