"""The division of the model among the workers of a run: whole on each, unless a plan is needed."""

from dataclasses import replace

from trainer.config.model import ModelConfig
from trainer.registry import find
from trainer.run.runtime import Runtime
from trainer.update.strategy import check_strategy, whole

_BYTES_A_WEIGHT = 16  # weight, gradient and two moments in fp32
_CERTAIN = 0.25  # share of the memory that weights may take where the whole model fits without a doubt


def divide(runtime: Runtime, shape: ModelConfig, sequence_length: int) -> Runtime:
    """The runtime with this worker's place, and with the plan's micro-batches where there is a plan.

    sequence_length: most tokens of an example. SettingsError where the model cannot be split as configured.
    """
    check_strategy(runtime.config.run.strategy, runtime.device)
    if _is_whole(runtime, shape):
        return replace(runtime, division=whole(runtime.workers))
    divided: Runtime = find("split model", "plan")(runtime, shape, sequence_length)
    return divided


def device_memory(runtime: Runtime) -> int:
    """Bytes of a worker's device, the smallest of all; a machine's processors share its memory."""
    if (given := runtime.config.split.memory_bytes) is not None:
        return given
    workers = runtime.workers
    machines = sum(rank == 0 for rank in workers.gather(workers.local_rank))
    neighbours = -(-workers.size // machines)
    return int(min(workers.gather(runtime.device.memory(neighbours))))


def _is_whole(runtime: Runtime, shape: ModelConfig) -> bool:
    """True where no plan is asked for, and none is needed."""
    asked = runtime.config.run.strategy
    if runtime.config.plan is not None or asked in ("sharded", "pipelined"):
        return False
    if asked != "auto" or runtime.workers.size == 1 or runtime.device.strategy != "replicated":
        return True
    return _BYTES_A_WEIGHT * shape.parameters < _CERTAIN * device_memory(runtime)
