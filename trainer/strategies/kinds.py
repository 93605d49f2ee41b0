"""The kind of a run's strategy: training, evaluation, and how its model is made."""

from collections.abc import Callable
from typing import NamedTuple

from bertdata.errors import SettingsError
from trainer.collectives.collective import Collective
from trainer.devices.device import HOST, Device
from trainer.model.bert import HeadedBert, check_memory
from trainer.registry import NAMES, find
from trainer.strategies.division import Division
from trainer.strategies.replicated import Replicated
from trainer.strategies.strategy import Inference, Strategy, Worker

Build = Callable[[HeadedBert, Device, Collective, Division], HeadedBert]


def build_whole(model: HeadedBert, device: Device, workers: Collective, division: Division) -> HeadedBert:
    """The whole model on the device, with first weights, of a model on the meta device."""
    check_memory(model.config)
    model.to_empty(device=HOST)
    model.draw_weights()
    if division.plan is not None:
        model.bert.recomputes = division.plan.stages[0].recomputes
    return device.place(model)


class StrategyKind(NamedTuple):
    """A strategy: its classes for training and for evaluation alone, and how its model is made."""

    strategy: Callable[[Worker], Strategy]
    inference: Callable[[Worker], Inference]
    build: Build = build_whole


REPLICATED = StrategyKind(Replicated, Inference)


def find_strategy(worker: Worker) -> Strategy:
    """The strategy that trains the worker's part of the model."""
    return find_kind(worker.device, worker.division).strategy(worker)


def find_inference(worker: Worker) -> Inference:
    """The evaluation of a model that is not trained, on the worker's device."""
    return find_kind(worker.device, worker.division).inference(worker)


def build_model(model: HeadedBert, device: Device, workers: Collective, division: Division) -> HeadedBert:
    """This worker's part of the model, with first weights from torch's generator, on the device.

    model: the whole model on the meta device, which is changed.
    """
    if division.plan is not None:
        device.return_memory()
    return find_kind(device, division).build(model, device, workers, division)


def find_kind(device: Device, division: Division) -> StrategyKind:
    """The kind of a division's strategy, which is the device's own where the model is not split."""
    name = device.strategy if division.plan is None else division.plan.strategy
    kind: StrategyKind = find("strategy", name)
    return kind


def check_strategy(asked: str, device: Device) -> None:
    """SettingsError where the device cannot train with the configured strategy."""
    own = device.strategy
    if asked not in ("auto", own) and (own != "replicated" or asked not in NAMES["strategy"]):
        found = f"device {device.name!r} has a strategy of its own ({own})"
        raise SettingsError(f"strategy is {asked}, but {found}; leave --strategy out")
