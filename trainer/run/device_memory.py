"""The memory of the workers' devices, beside what a model takes that each of them has as a whole."""

from trainer.collectives.collective import Collective
from trainer.config.settings import Config
from trainer.config.split import SplitSection
from trainer.devices.device import Device

_BYTES_A_WEIGHT = 16  # weight, gradient and two moments in fp32
_CERTAIN = 0.25  # fraction of the memory that weights may take where the whole model fits without a doubt


def fits_whole(config: Config, device: Device, workers: Collective, parameters: int) -> bool:
    """True if a whole model of so many weights surely fits on the device, or it cannot be divided there."""
    if device.strategy != "replicated":
        return True
    return _BYTES_A_WEIGHT * parameters < _CERTAIN * device_memory(config, device, workers)


def device_memory(config: Config, device: Device, workers: Collective) -> int:
    """Bytes of the smallest device of all workers. Workers on processors share the machine's memory."""
    if (given := config.section(SplitSection).memory_bytes) is not None:
        return given
    machines = sum(rank == 0 for rank in workers.gather(workers.local_rank))
    neighbours = -(-workers.size // machines)
    return int(min(workers.gather(device.memory(neighbours))))
