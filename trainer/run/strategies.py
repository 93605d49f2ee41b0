"""The choice of a strategy: how an update goes over the devices."""

from trainer.devices.device import Device
from trainer.plugins import find
from trainer.update.inference import Inference
from trainer.update.strategy import Division, Strategy, Worker


def find_strategy(worker: Worker) -> Strategy:
    """The strategy that trains the worker's part of the model."""
    kind, keys = strategy_class(worker.device, worker.division), worker.config.update
    is_alone = worker.workers.size == 1 and worker.config.workers.allreduce_post_accumulation
    if kind is Strategy and not (is_alone and keys.precision == "fp32" and not keys.clips_micro_batches):
        kind = find("strategy", "of several workers")
    return kind(worker)


def strategy_class(device: Device, division: Division) -> type[Strategy]:
    """The class of a division's strategy, which is the device's own where the model is not split."""
    return find("strategy", division.strategy or device.strategy)


def find_inference(worker: Worker, strategy: Strategy | None = None) -> Inference:
    """The evaluation of the worker's model, on its device. strategy: that of its training, or None."""
    kind = strategy_class(worker.device, worker.division)
    return (kind.inference or Inference)(worker, strategy)
