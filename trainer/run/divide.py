"""The division of the model among the workers of a run."""

from dataclasses import replace

from trainer.config.model import ModelConfig
from trainer.run.runtime import Runtime
from trainer.strategies.division import by_plan, whole
from trainer.strategies.registry import check_strategy
from trainer.strategies.split.fit import check_split
from trainer.strategies.split.plan import Memory, Plan, StagePlan


def divide(runtime: Runtime, shape: ModelConfig, sequence_length: int) -> Runtime:
    """The runtime with this worker's place; sequence_length: most tokens of an example."""
    strategy = runtime.config.run.strategy
    check_strategy(strategy, runtime.device)
    if strategy == "sharded":
        check_split(strategy, runtime.device, runtime.workers)
        plan = one_sharded_stage(runtime, shape, sequence_length)
        return replace(runtime, division=by_plan(runtime.workers, plan))
    return replace(runtime, division=whole(runtime.workers))


def one_sharded_stage(runtime: Runtime, shape: ModelConfig, sequence_length: int) -> Plan:
    """The plan of a model of which each worker holds a part of every weight, without forecasts."""
    config, copies = runtime.config, runtime.workers.size
    batch_size, micro_batches = config.update.micro_batches(copies)
    stage = StagePlan(
        first=0,
        last=shape.num_hidden_layers,
        recomputes=config.split.recompute == "always",
        sharded=True,
        forward=0.0,
        backward=0.0,
        transfer=0.0,
        all_reduce=0.0,
        memory=Memory(weights=0, gradients=0, moments=0, activations=0),
    )
    return Plan(
        model=shape.as_json(),
        sequence_length=sequence_length,
        precision=config.update.precision,
        optimiser=config.update.optimiser,
        copies=copies,
        batch_size=batch_size,
        micro_batches=micro_batches,
        stages=(stage,),
    )
