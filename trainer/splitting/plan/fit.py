"""Checks of whether a split model can be trained with this device, these workers, and the plan."""

from collections.abc import Callable
from functools import partial
from inspect import signature

import torch

from bertdata.config.settings import require
from bertdata.errors import SettingsError
from trainer.config.model import ModelConfig
from trainer.config.model_kinds import read_model_config
from trainer.devices.device import Device
from trainer.splitting.plan.costs import find_optimiser_costs
from trainer.splitting.plan.plan import Plan
from trainer.workers.collective import Collective
from trainer.workers.worker_group import LAUNCHERS

SETTINGS_WITHOUT_EFFECT = (
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "initializer_range",
    "deep_weight_init",
    "model_type",
    "pad_token_id",
)
"""Names of the model settings that a plan does not depend on.

A run may use a plan that was made with other values of these settings.
"""

_MAKER = "python -m trainer split"


def check_split(strategy: str, device: Device, workers: Collective) -> None:
    """Raise SettingsError if a split model cannot be trained on this device with these workers.

    strategy: "sharded" or "pipelined".
    """
    update = device.config.update
    takes_parts = not device.ends_updates and not device.compiles_always and device.strategy == "replicated"
    require(takes_parts, f"strategy is {strategy}, but device {device.name!r} takes whole models only")
    require(
        workers.name == "torch_distributed",
        f"strategy {strategy} needs torch.distributed: start the workers with "
        f"{LAUNCHERS['torch_distributed']}; found {workers.name}",
    )
    require(
        not (device.must_compile and device.compiles_whole),
        f"strategy {strategy} divides the model, which a CUDA graph has as a whole: leave out --cuda-graphs",
    )
    require(not device.config.run.compile_only, f"strategy {strategy} has no --compile-only: give --compile")
    require(
        not update.clips_micro_batches,
        f"strategy {strategy} clips whole updates: clipping is {update.clipping_point}; "
        "give --clipping per_update or none",
    )
    require(
        device.config.workers.allreduce_post_accumulation,
        f"strategy {strategy} averages gradients in its own way: leave out allreduce_post_accumulation",
    )
    if strategy == "sharded":
        check_sharding()
    if strategy == "pipelined":
        check_pipelining()


def can_split(device: Device, workers: Collective) -> bool:
    """Return True if split models can be trained on this device with these workers, with either strategy."""
    strategies = ("sharded", "pipelined")
    return all(
        raises_no_settings_error(partial(check_split, strategy, device, workers)) for strategy in strategies
    )


def raises_no_settings_error(work: Callable[[], object]) -> bool:
    """Return True if the function raises no SettingsError."""
    try:
        work()
    except SettingsError:
        return False
    return True


def check_sharding() -> None:
    """Raise SettingsError if this version of PyTorch cannot shard weights."""
    require(can_shard(), f"strategy sharded needs torch 2.6 or later, found {torch.__version__}")


def can_shard() -> bool:
    """Return True if this version of PyTorch can shard weights among processes (FSDP2)."""
    return torch.distributed.is_available() and _has_fully_shard()


def _has_fully_shard() -> bool:
    """Return True if this version of PyTorch has the function ``fully_shard``."""
    from torch.distributed import fsdp

    return hasattr(fsdp, "fully_shard")


def check_pipelining() -> None:
    """Raise SettingsError if this version of PyTorch cannot train pipelines as this trainer needs it."""
    can = torch.distributed.is_available() and _has_pipelining()
    require(can, f"strategy pipelined needs a newer torch than {torch.__version__}; 2.13 will do")


def _has_pipelining() -> bool:
    """Return True if PyTorch's pipeline schedules have the options that this trainer uses."""
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
    head: str | None = None,
) -> None:
    """Raise SettingsError if the plan was made for a run that differs from this one.

    The error names the first difference.

    devices: number of this run's devices.
    sequence_length: length of this run's longest sequence. It may be shorter than the plan's.
    optimiser: name of this run's optimiser. It may differ from the plan's if its moments need as much memory.
    where: path of the plan's file, for the error message.
    head: type of the model's head (BOTH, WORDS or SMALL of plan.py). None if any head is accepted.
    """

    def require_equal(holds: bool, planned: str) -> None:
        require(holds, f"{where}: is a plan for {planned}; make a plan for this run with {_MAKER}")

    known = read_model_config(plan.model, where).as_json()
    for name, wanted in model.as_json().items():
        found = f"its {name} is {known[name]}, this run's {wanted}"
        require_equal(name in SETTINGS_WITHOUT_EFFECT or known[name] == wanted, f"another model: {found}")
    is_same = None in (head, plan.head) or head == plan.head
    require_equal(is_same, f"another task: its head is {plan.head}, this run's {head}")
    parts = f"{len(plan.stages)} (stages) * {plan.copies} (copies)"
    require_equal(plan.devices == devices, f"{plan.devices} devices = {parts}, found {devices}")
    require_equal(
        sequence_length <= plan.sequence_length,
        f"sequences of {plan.sequence_length} ids, this run's have up to {sequence_length}",
    )
    require_equal(precision == plan.precision, f"precision {plan.precision}, this run's is {precision}")
    has, needs = (find_optimiser_costs(name).moments for name in (plan.optimiser, optimiser))
    require_equal(
        has == needs,
        f"optimiser {plan.optimiser}, whose moments take {has} bytes a weight; "
        f"those of {optimiser}, this run's, take {needs}",
    )
