"""Functions that decide how a run's model is divided among the workers, and make a plan if one is needed."""

from dataclasses import replace
from functools import partial

from bertdata.config.settings import require
from bertdata.errors import SettingsError
from bertdata.io import storage
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.devices.device import HOST, Device
from trainer.splitting.memory import find_device_memory
from trainer.splitting.pieces import find_planned_division
from trainer.splitting.plan.bandwidth import measure_bandwidth, measure_sharding
from trainer.splitting.plan.costs import Costs
from trainer.splitting.plan.fit import (
    can_shard,
    can_split,
    check_fits,
    check_sharding,
    check_split,
    raises_no_settings_error,
)
from trainer.splitting.plan.parts import find_head
from trainer.splitting.plan.plan import PLAN_FILE, Plan, parse_plan, read_plan, write_plan
from trainer.splitting.plan.planner import make_plan
from trainer.splitting.plan.profile import find_attention, measure_costs, return_memory
from trainer.splitting.plan.rates import DEFAULT_DEVICE, SHEETS, DeviceRate, find_sheet_rate
from trainer.splitting.plan.request import PlanRequest, count_configured_examples, list_meshes
from trainer.splitting.show.table import format_plan_lines
from trainer.update.averaging import find_sum_dtype
from trainer.update.worker import Runtime, hold_whole_model

_PROCESSOR = DeviceRate(flops=5e10, bytes=1e10, name="a core of a processor")
_ALONE = 1e9  # bytes per second. A single worker sends nothing, so any value gives the same plan.


def place_by_plan(runtime: Runtime, shape: ModelConfig, sequence_length: int) -> Runtime:
    """Return the runtime with the stage and copy of the model that this worker gets.

    If there is a plan, the returned runtime also has the plan's number and size of micro-batches.
    sequence_length: largest number of tokens in an example.
    Raises SettingsError if the model cannot be split as configured.
    """
    config, device, workers = runtime.config, runtime.device, runtime.collective
    plan = find_plan(runtime, shape, sequence_length)
    if plan is None:
        return replace(runtime, model_share=hold_whole_model(workers))
    return_memory(device)
    if plan.strategy != "replicated":
        check_split(plan.strategy, device, workers)
        device.compiles = device.must_compile  # a divided model is compiled only on request
    return replace(
        runtime,
        config=_apply_plan_update(plan, config, workers.size),
        model_share=find_planned_division(workers, plan),
    )


def find_plan(runtime: Runtime, shape: ModelConfig, sequence_length: int) -> Plan | None:
    """Return the plan from the configured file, or make a new plan.

    None means that no plan is needed, because each worker trains the whole model.
    sequence_length: largest number of tokens in an example.
    """
    config, device, workers = runtime.config, runtime.device, runtime.collective
    strategy, path = config.run.strategy, config.split.plan
    if path is not None:
        plan = parse_plan(runtime.on_rank_0(lambda: read_plan(path).as_json()), path)
        _check_plan(plan, path, runtime, shape, sequence_length)
        return plan
    # The user asks for a split. Raise an error early if a split model cannot be trained here, then make the
    # plan.
    if strategy in ("sharded", "pipelined"):
        check_split(strategy, device, workers)
        enough = strategy == "sharded" or workers.size > 1
        require(enough, "strategy pipelined needs two workers or more, found 1")
        return plan_run(runtime, shape, sequence_length)
    # With strategy auto, plan_run also returns None if the whole model fits on each device.
    if strategy == "auto" and workers.size > 1 and can_split(device, workers):
        return plan_run(runtime, shape, sequence_length)
    return None


def _check_plan(plan: Plan, path: str, runtime: Runtime, shape: ModelConfig, sequence_length: int) -> None:
    """Raise SettingsError if the plan in a file does not suit this run.

    path: path of the plan's file, for the error message.
    """
    asked, update = runtime.config.run.strategy, runtime.config.update
    require(
        asked in ("auto", plan.strategy),
        f"{path}: is a plan for strategy {plan.strategy}, strategy is {asked}",
    )
    check_fits(
        plan,
        model=shape,
        devices=runtime.collective.size,
        sequence_length=sequence_length,
        precision=update.precision,
        optimiser=update.optimiser,
        where=path,
        head=find_head(runtime.task.name),
    )
    require(
        plan.stages[0].sharded == plan.stages[-1].sharded,
        f"{path}: of the first and the last stage one is sharded; expected both or neither, because both "
        "may have the word embeddings",
    )
    if any(stage.sharded for stage in plan.stages):
        check_sharding()


def _apply_plan_update(plan: Plan, config: Config, devices: int) -> Config:
    """Return the configuration with the plan's number and size of micro-batches.

    If the user has configured the number of rows per update, it is kept. It is computed as if each device had
    the whole model. A configured batch size is kept too. What is not configured comes from the plan.
    devices: number of devices.
    """
    update = config.update
    given = (update.batch_size, update.accumulation, update.global_batch_size, update.replicas)
    examples = count_configured_examples(config, devices) if any(given) else plan.examples
    size = update.batch_size or plan.batch_size
    return config.changed(batch_size=size, accumulation=None, global_batch_size=examples, replicas=None)


def plan_run(runtime: Runtime, shape: ModelConfig, sequence_length: int) -> Plan | None:
    """Make a plan for the configured strategy, log it and save it. All workers return the same plan.

    None means that no plan is needed or possible, and each worker trains the whole model. The plan is written
    to the file save_plan and to output_dir.
    sequence_length: largest number of tokens in an example.
    Raises SettingsError if the user asks for a split and the model does not fit on the devices in any way.
    """
    split, device, workers = runtime.config.split, runtime.device, runtime.collective
    make = partial(
        _make_request, runtime, shape, sequence_length, find_device_memory(runtime.config, device, workers)
    )
    # Rank 0 tries to make the request first, because an error there ends all workers.
    runtime.on_rank_0(lambda: make() is not None)
    request = make()
    # With strategy auto, a model that fits as configured needs no plan, so nothing is measured.
    if runtime.on_rank_0(lambda: runtime.config.run.strategy == "auto" and fits_as_configured(request)):
        return None
    if split.bandwidth is None and workers.size > 1:
        request = add_bandwidths(request, runtime)
    costs = None
    if split.profile_layers and runtime.on_rank_0(
        lambda: raises_no_settings_error(lambda: list_meshes(request))
    ):
        runtime.log(f"timing the model's layers on device {device.name}")
        costs = measure_costs(request, device, workers)
    found = runtime.on_rank_0(lambda: _make_saved_plan(runtime, request, costs))
    return None if found is None else parse_plan(found, "the plan")


def _make_request(runtime: Runtime, shape: ModelConfig, sequence_length: int, memory: int) -> PlanRequest:
    """Return the request for a plan, which contains everything in the run's configuration that
    determines the plan.

    memory: bytes per device.
    """
    config, device = runtime.config, runtime.device
    return PlanRequest(
        config=config,
        model=shape,
        sequence_length=sequence_length,
        examples=count_configured_examples(config, runtime.collective.size),
        devices=runtime.collective.size,
        memory=memory,
        bandwidth=config.split.bytes_per_second or _ALONE,
        rate=find_rate(device),
        head=runtime.task.name,
        attention=find_attention(device),
        may_shard=can_shard(),
    )


def add_bandwidths(request: PlanRequest, runtime: Runtime) -> PlanRequest:
    """Return the request with bandwidths measured between the workers.

    All workers (two or more) must call this together.
    """
    device, workers, sums = runtime.device, runtime.collective, find_sum_dtype(runtime.config)
    bandwidth = measure_bandwidth(device, workers, sums)
    sharding = measure_sharding(device, workers, sums) if request.may_shard else None
    return replace(request, bandwidth=bandwidth, sharding=sharding)


def _make_saved_plan(runtime: Runtime, request: PlanRequest, costs: Costs | None) -> dict[str, object] | None:
    """Make the plan on one worker, log it, write it to files, and return it as JSON.

    None means that no plan fits. The run then trains the whole model on each worker.
    costs: measured costs of the model's layers. None to compute them.
    """
    run, split = runtime.config.run, runtime.config.split
    try:
        plan = make_plan(request, costs)
    except SettingsError as error:
        if run.strategy != "auto" or split.device_memory is not None:
            raise
        runtime.log(f"warning: {error}; each device has the whole model nevertheless")
        return None
    computed = f"computed for {request.rate.name}"
    source = f"layers measured on device {runtime.device.name}" if costs else computed
    for line in filter(None, format_plan_lines(plan, request.memory, split.memory_margin, source)):
        runtime.log(line)
    if split.save_plan:
        write_plan(split.save_plan, plan)
    if run.output_dir is not None:
        storage.make_directory(run.output_dir)
        write_plan(storage.join(run.output_dir, PLAN_FILE), plan)
    return plan.as_json()


def fits_as_configured(request: PlanRequest) -> bool:
    """Return True if each device can hold the whole model with the configured micro-batches.

    All activations must fit too. Saving memory by computing them again in the backward pass does not count.
    """
    whole = request.changed(strategy="replicated", recompute="never")
    return request.split.recompute != "always" and raises_no_settings_error(lambda: make_plan(whole))


def find_rate(device: Device) -> DeviceRate:
    """Return the computing speed and memory bandwidth of a device.

    An accelerator's figures come from the data sheet for its name, and a processor's are a fixed estimate.
    """
    if device.torch_device.type == HOST.type:
        return _PROCESSOR
    described = device.describe().lower()
    name = next((name for name in SHEETS if name in described), DEFAULT_DEVICE)
    return find_sheet_rate(name, device.config.update.precision)
