"""The model over several workers: whole on each where that surely fits, else divided by a plan."""

from dataclasses import replace

from bertdata.errors import SettingsError
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.config.split import SplitSection
from trainer.devices.device import Device
from trainer.plugins import find, is_name
from trainer.run.runtime import Runtime
from trainer.update.strategy import whole
from trainer.workers.collective import Collective

_BYTES_A_WEIGHT = 16  # weight, gradient and two moments in fp32
_CERTAIN = 0.25  # fraction of the memory that weights may take where the whole model fits without a doubt


def find_place(runtime: Runtime, shape: ModelConfig, sequence_length: int) -> Runtime:
    """The runtime with this worker's place, as of ``trainer.run.runtime.divide``."""
    config, device, workers = runtime.config, runtime.device, runtime.workers
    asked = config.run.strategy
    check_strategy(asked, device)
    needs_plan = config.keys["plan"] is not None or asked in ("sharded", "pipelined")
    if not needs_plan and asked == "auto" and workers.size > 1:
        needs_plan = not fits_whole(config, device, workers, runtime.empty_model(shape).count_weights())
    if not needs_plan:
        return replace(runtime, division=whole(workers))
    return find("split model", "plan")(runtime, shape, sequence_length)


def check_strategy(asked: str, device: Device) -> None:
    """SettingsError where the device cannot train with the configured strategy."""
    own = device.strategy
    if asked not in ("auto", own) and (own != "replicated" or not is_name("strategy", asked)):
        found = f"device {device.name!r} has a strategy of its own ({own})"
        raise SettingsError(f"strategy is {asked}, but {found}; leave --strategy out")


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
