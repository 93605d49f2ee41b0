"""Choice of the strategy, which decides how an update is divided over the devices."""

from trainer.devices.device import Device
from trainer.plugins import find
from trainer.update.inference import Inference
from trainer.update.strategy import Strategy
from trainer.update.worker import ModelShare, Worker


def find_strategy(worker: Worker) -> Strategy:
    """Return the strategy that trains this worker's share of the model."""
    return find_strategy_class(worker.device, worker.model_share)(worker)


def find_strategy_class(device: Device, share: ModelShare) -> type[Strategy]:
    """Return the class of the strategy.

    It is the plan's strategy if a plan divides the model. Otherwise it is the user's plug-in if one is
    configured, or else the device's strategy.
    """
    asked = device.config.run.strategy
    whole = asked if ":" in asked else device.strategy
    kind: type[Strategy] = find("strategy", share.strategy or whole)
    return kind


def find_inference(worker: Worker, strategy: Strategy | None = None) -> Inference:
    """Return the object that computes the outputs of the worker's model for an evaluation.

    strategy: the strategy of the training that is under way, or None if nothing is trained.
    """
    kind = find_strategy_class(worker.device, worker.model_share)
    return (kind.inference or Inference)(worker, strategy)
