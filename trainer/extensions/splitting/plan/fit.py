"""Checks that device, workers and settings fit a model that is split, and that a plan fits its run."""

from inspect import signature

import torch

from bertdata.errors import SettingsError
from trainer.collectives.collective import Collective
from trainer.collectives.workers import LAUNCHERS
from trainer.config.model import ModelConfig
from trainer.devices.device import Device
from trainer.extensions.splitting.plan.optimiser_costs import optimiser_costs
from trainer.extensions.splitting.plan.plan import Plan

FREE = ("hidden_dropout_prob", "attention_probs_dropout_prob", "initializer_range", "deep_weight_init")
"""Settings of a model that no plan depends on."""

_REMEDY = "make a plan for this run with python -m trainer split"


def check_split(strategy: str, device: Device, workers: Collective) -> None:
    """SettingsError where the strategy, sharded or pipelined, cannot train on the device with the workers."""
    update = device.config.update
    if device.own_step or device.compiles_always or device.strategy != "replicated":
        raise SettingsError(f"strategy is {strategy}, but device {device.name!r} takes whole models only")
    if workers.name != "torch_distributed":
        raise SettingsError(
            f"strategy {strategy} needs torch.distributed: start the workers with "
            f"{LAUNCHERS['torch_distributed']}; found {workers.name}"
        )
    if device.must_compile:
        raise SettingsError(f"strategy {strategy} compiles no model: leave out --compile")
    if update.micro_batch_clip_norm(1) is not None:
        raise SettingsError(
            f"strategy {strategy} clips whole updates: clipping is {update.clipping_point}; "
            "give --clipping per_update or none"
        )
    if not update.allreduce_post_accumulation:
        raise SettingsError(
            f"strategy {strategy} averages gradients in its own way: leave out allreduce_post_accumulation"
        )
    if strategy == "sharded":
        check_sharding()
    if strategy == "pipelined":
        check_pipelining()


def can_split(device: Device, workers: Collective) -> bool:
    """True if ``check_split`` has nothing against either strategy."""
    try:
        for strategy in ("sharded", "pipelined"):
            check_split(strategy, device, workers)
    except SettingsError:
        return False
    return True


def check_sharding() -> None:
    """SettingsError where this PyTorch cannot divide weights among processes."""
    if not can_shard():
        raise SettingsError(f"strategy sharded needs torch 2.6 or later, found {torch.__version__}")


def can_shard() -> bool:
    """True if this PyTorch can divide weights among processes."""
    return torch.distributed.is_available() and _has_fully_shard()


def _has_fully_shard() -> bool:
    from torch.distributed import fsdp

    return hasattr(fsdp, "fully_shard")


def check_pipelining() -> None:
    """SettingsError where this PyTorch cannot pass micro-batches from stage to stage."""
    if not torch.distributed.is_available() or not _has_pipelining():
        raise SettingsError(f"strategy pipelined needs a newer torch than {torch.__version__}; 2.13 will do")


def _has_pipelining() -> bool:
    try:
        from torch.distributed.pipelining import ScheduleGPipe
    except ImportError:
        return False
    scales = "scale_grads" in signature(ScheduleGPipe).parameters
    return scales and "return_outputs" in signature(ScheduleGPipe.step).parameters


def check_fits(
    plan: Plan,
    *,
    model: ModelConfig,
    devices: int,
    sequence_length: int,
    precision: str,
    optimiser: str,
    where: str,
) -> None:
    """SettingsError names the first difference between the plan's run and this one.

    sequence_length: the longest of the run, which may be shorter than the plan's. optimiser: may be another
    with moments of the same size. where: the plan's file.
    """
    _check_model(plan, model, where)
    if plan.devices != devices:
        parts = f"{len(plan.stages)} (stages) * {plan.copies} (copies)"
        raise SettingsError(
            f"{where}: is a plan for {plan.devices} devices = {parts}, found {devices}; {_REMEDY}"
        )
    if sequence_length > plan.sequence_length:
        raise SettingsError(
            f"{where}: is a plan for sequences of {plan.sequence_length} ids, "
            f"this run's have up to {sequence_length}; {_REMEDY}"
        )
    if precision != plan.precision:
        raise SettingsError(
            f"{where}: is a plan for precision {plan.precision}, this run's is {precision}; {_REMEDY}"
        )
    planned, needed = (optimiser_costs(name).moments for name in (plan.optimiser, optimiser))
    if planned != needed:
        raise SettingsError(
            f"{where}: is a plan for optimiser {plan.optimiser}, whose moments take {planned} bytes a "
            f"weight; those of {optimiser}, this run's, take {needed}; {_REMEDY}"
        )


def _check_model(plan: Plan, model: ModelConfig, where: str) -> None:
    planned = ModelConfig.from_dict(plan.model, where).as_json()
    for name, wanted in model.as_json().items():
        if name not in FREE and planned[name] != wanted:
            found = f"its {name} is {planned[name]}, this run's {wanted}"
            raise SettingsError(f"{where}: is a plan for another model: {found}; {_REMEDY}")
