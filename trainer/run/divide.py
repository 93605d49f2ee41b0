"""The division of the model among the workers of a run."""

from dataclasses import replace

from trainer.config.model import ModelConfig
from trainer.run.runtime import Runtime
from trainer.strategies.division import whole
from trainer.strategies.registry import check_strategy


def divide(runtime: Runtime, shape: ModelConfig, sequence_length: int) -> Runtime:
    """The runtime with this worker's place; sequence_length: most tokens of an example."""
    check_strategy(runtime.config.run.strategy, runtime.device)
    return replace(runtime, division=whole(runtime.workers))
