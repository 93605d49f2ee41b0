"""Memory of the devices, and whether a whole model surely fits."""

from trainer.config.settings import Config
from trainer.devices.device import Device
from trainer.workers.collective import Collective

_BYTES_A_WEIGHT = 16  # weight, gradient and two moments in fp32


_CERTAIN = 0.25  # fraction of the memory that weights may take where the whole model fits without a doubt


def fits_whole(config: Config, device: Device, workers: Collective, parameters: int) -> bool:
    """True if a whole model of so many weights surely fits on the device, or it cannot be divided there."""
    if device.strategy != "replicated":
        return True
    return _BYTES_A_WEIGHT * parameters < _CERTAIN * device_memory(config, device, workers)


def device_memory(config: Config, device: Device, workers: Collective) -> int:
    """Bytes of the smallest device of all workers. Workers on processors share the machine's memory."""
    if (given := config.split.memory_bytes) is not None:
        return given
    machines = sum(rank == 0 for rank in workers.gather(workers.local_rank))
    neighbours = -(-workers.size // machines)
    return int(min(workers.gather(device.memory(neighbours))))
