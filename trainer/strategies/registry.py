"""The strategy of a run, by the configured device."""

from collections.abc import Callable
from typing import NamedTuple

from bertdata.errors import SettingsError
from trainer.collectives.collective import Collective
from trainer.devices.device import HOST, Device
from trainer.model.bert import HeadedBert, check_memory
from trainer.strategies.division import Division
from trainer.extensions.splitting.pipelined import Pipelined, PipelinedInference, build_stage
from trainer.strategies.replicated import Replicated
from trainer.extensions.splitting.sharded import Sharded, ShardedInference, build_sharded
from trainer.strategies.strategy import Inference, Strategy, Worker
from trainer.extensions.vendors.whole_updates import ProgramInference, WholeUpdates

Build = Callable[[HeadedBert, Device, Collective, Division], HeadedBert]


def build_whole(model: HeadedBert, device: Device, workers: Collective, division: Division) -> HeadedBert:
    """The whole model on the device, with first weights, of a model on the meta device."""
    check_memory(model.config)
    model.to_empty(device=HOST)
    model.draw_weights()
    if division.plan is not None:
        model.bert.recomputes = division.plan.stages[0].recomputes
    return device.place(model)


class Kind(NamedTuple):
    """A strategy: its classes for training and for evaluation alone, and how its model is made."""

    strategy: Callable[[Worker], Strategy]
    inference: Callable[[Worker], Inference]
    build: Build = build_whole


STRATEGIES: dict[str, Kind] = {
    "pipelined": Kind(Pipelined, PipelinedInference, build_stage),
    "replicated": Kind(Replicated, Inference),
    "sharded": Kind(Sharded, ShardedInference, build_sharded),
    "whole_updates": Kind(WholeUpdates, ProgramInference),
}


def find_strategy(worker: Worker) -> Strategy:
    """The strategy that trains the worker's part of the model."""
    return STRATEGIES[strategy_name(worker.device, worker.division)].strategy(worker)


def find_inference(worker: Worker) -> Inference:
    """The evaluation of a model that is not trained, on the worker's device."""
    return STRATEGIES[strategy_name(worker.device, worker.division)].inference(worker)


def build_model(model: HeadedBert, device: Device, workers: Collective, division: Division) -> HeadedBert:
    """This worker's part of the model, with first weights from torch's generator, on the device.

    model: the whole model on the meta device, which is changed.
    """
    if division.plan is not None:
        device.return_memory()
    return STRATEGIES[strategy_name(device, division)].build(model, device, workers, division)


def strategy_name(device: Device, division: Division) -> str:
    """The strategy of a division, which is the device's own where the model is not split."""
    return device.strategy if division.plan is None else division.plan.strategy


def check_strategy(asked: str, device: Device) -> None:
    """SettingsError where the device cannot train with the configured strategy."""
    own = device.strategy
    if asked not in ("auto", own) and (own != "replicated" or asked not in STRATEGIES):
        found = f"device {device.name!r} has a strategy of its own ({own})"
        raise SettingsError(f"strategy is {asked}, but {found}; leave --strategy out")
