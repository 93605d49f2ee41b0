"""The division of the model among the workers of a run."""

from dataclasses import replace

from trainer.config.model import ModelConfig
from trainer.config.section import check
from trainer.config.settings import Config
from trainer.config.split import SplitSection
from trainer.extensions.splitting.pieces import by_plan
from trainer.extensions.splitting.plan.fit import can_split, check_fits, check_sharding, check_split
from trainer.extensions.splitting.plan.parts import head_of
from trainer.extensions.splitting.plan.plan import Plan, parse_plan, read_plan
from trainer.extensions.splitting.plan.profile import return_memory
from trainer.extensions.splitting.planning import plan_run
from trainer.run.runtime import Runtime
from trainer.update.strategy import whole


def divide(runtime: Runtime, shape: ModelConfig, sequence_length: int) -> Runtime:
    """The runtime with this worker's place, and with the plan's micro-batches where there is a plan.

    sequence_length: most tokens of an example. SettingsError where the model cannot be split as configured.
    """
    config, device, workers = runtime.config, runtime.device, runtime.workers
    plan = find_plan(runtime, shape, sequence_length)
    if plan is None:
        return replace(runtime, division=whole(workers))
    return_memory(device)
    if plan.strategy != "replicated":
        check_split(plan.strategy, device, workers)
        device.compiles = False
    elif plan.stages[0].recomputes and not device.must_compile:
        device.compiles = False
    return replace(
        runtime, config=_with_update_of(plan, config, workers.size), division=by_plan(workers, plan)
    )


def find_plan(runtime: Runtime, shape: ModelConfig, sequence_length: int) -> Plan | None:
    """The plan of the file, else a new one. None: each worker has the whole model."""
    config, device, workers = runtime.config, runtime.device, runtime.workers
    strategy, path = config.run.strategy, config.section(SplitSection).plan
    if path is not None:
        plan = parse_plan(runtime.on_rank_0(lambda: read_plan(path).as_json()), path)
        _check_plan(plan, path, runtime, shape, sequence_length)
        return plan
    if strategy in ("sharded", "pipelined"):
        check_split(strategy, device, workers)
        enough = strategy == "sharded" or workers.size > 1
        check(enough, "strategy pipelined needs two workers or more, found 1")
        return plan_run(runtime, shape, sequence_length)
    if strategy == "auto" and workers.size > 1 and can_split(device, workers):
        return plan_run(runtime, shape, sequence_length)
    return None


def _check_plan(plan: Plan, path: str, runtime: Runtime, shape: ModelConfig, sequence_length: int) -> None:
    """SettingsError where a file's plan is not for this run."""
    asked, update = runtime.config.run.strategy, runtime.config.update
    check(
        asked in ("auto", plan.strategy),
        f"{path}: is a plan for strategy {plan.strategy}, strategy is {asked}",
    )
    check_fits(
        plan,
        model=shape,
        devices=runtime.workers.size,
        sequence_length=sequence_length,
        precision=update.precision,
        optimiser=update.optimiser,
        where=path,
        head=head_of(runtime.task.name),
    )
    check(
        plan.stages[0].sharded == plan.stages[-1].sharded,
        f"{path}: of the first and the last stage one is sharded; expected both or neither, because both "
        "may have the word embeddings",
    )
    if any(stage.sharded for stage in plan.stages):
        check_sharding()


def _with_update_of(plan: Plan, config: Config, devices: int) -> Config:
    """The configuration with the plan's micro-batches.

    The examples of an update stay as they are configured for so many devices that have the whole model,
    as does a batch size that is given; if nothing is given, both are the plan's.
    """
    update = config.update
    given = (update.batch_size, update.accumulation, update.global_batch_size, update.replicas)
    configured = update.global_batch_size or update.examples(update.replicas or devices)
    examples = configured if any(given) else plan.examples
    size = update.batch_size or plan.batch_size
    return config.changed(batch_size=size, accumulation=None, global_batch_size=examples, replicas=None)
