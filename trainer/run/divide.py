"""The division of the model among the workers of a run."""

from dataclasses import replace

from bertdata.errors import SettingsError
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.run.runtime import Runtime
from trainer.strategies.division import by_plan, whole
from trainer.strategies.registry import check_strategy
from trainer.strategies.split.fit import check_fits, check_split
from trainer.strategies.split.plan import Memory, Plan, StagePlan, parse_plan
from trainer.strategies.split.plan_file import read_plan


def divide(runtime: Runtime, shape: ModelConfig, sequence_length: int) -> Runtime:
    """The runtime with this worker's place, and with the plan's micro-batches where the model is split.

    sequence_length: most tokens of an example. SettingsError where the model cannot be split as configured.
    """
    config, device, workers = runtime.config, runtime.device, runtime.workers
    strategy, path = config.run.strategy, config.split.plan
    check_strategy(strategy, device)
    if path is not None:
        plan = parse_plan(runtime.share(lambda: read_plan(path).as_json()), path)
        _check_plan(plan, path, runtime, shape, sequence_length)
    elif strategy == "sharded":
        check_split(strategy, device, workers)
        plan = one_sharded_stage(runtime, shape, sequence_length)
    elif strategy == "pipelined":
        raise SettingsError("strategy pipelined needs a plan: give --plan")
    else:
        return replace(runtime, division=whole(workers))
    if plan.strategy != "replicated":
        check_split(plan.strategy, device, workers)
    return replace(
        runtime, config=_with_update_of(plan, config, workers.size), division=by_plan(workers, plan)
    )


def _check_plan(plan: Plan, path: str, runtime: Runtime, shape: ModelConfig, sequence_length: int) -> None:
    """SettingsError where a file's plan is not for this run."""
    asked, devices = runtime.config.run.strategy, runtime.workers.size
    precision = runtime.config.update.precision
    if asked not in ("auto", plan.strategy):
        raise SettingsError(f"{path}: is a plan for strategy {plan.strategy}, strategy is {asked}")
    check_fits(
        plan, model=shape, devices=devices, sequence_length=sequence_length, precision=precision, where=path
    )
    if len(plan.stages) > 1 and any(stage.sharded for stage in plan.stages):
        raise SettingsError(f"{path}: has sharded stages in a pipeline, which cannot be trained yet")


def _with_update_of(plan: Plan, config: Config, devices: int) -> Config:
    """The configuration with the plan's micro-batches.

    The examples of an update stay as they are configured for so many devices that have the whole model,
    as does a batch size that is given; if nothing is given, both are the plan's.
    """
    update = config.update
    given = (update.batch_size, update.accumulation, update.global_batch_size, update.replicas)
    examples = plan.examples if not any(given) else update.examples(devices)
    size = update.batch_size or plan.batch_size
    return config.changed(batch_size=size, accumulation=None, global_batch_size=examples, replicas=None)


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
