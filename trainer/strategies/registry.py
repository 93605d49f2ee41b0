"""The strategy of a run, by the configured device."""

from collections.abc import Callable

from bertdata.errors import SettingsError
from trainer.strategies.replicated import Replicated
from trainer.strategies.strategy import Inference, Strategy, Worker
from trainer.strategies.whole_updates import ProgramInference, WholeUpdates

Maker = tuple[Callable[[Worker], Strategy], Callable[[Worker], Inference]]

STRATEGIES: dict[str, Maker] = {
    "replicated": (Replicated, Inference),
    "whole_updates": (WholeUpdates, ProgramInference),
}
"""The classes of each strategy, for training and for evaluation alone."""


def find_strategy(worker: Worker) -> Strategy:
    """The strategy that trains on the worker's device; SettingsError where the configured one cannot."""
    asked, own = worker.config.run.strategy, worker.device.strategy
    if asked not in ("auto", own):
        found = f"device {worker.device.name!r} has a strategy of its own ({own})"
        raise SettingsError(f"strategy is {asked}, but {found}; leave --strategy out")
    return STRATEGIES[own][0](worker)


def find_inference(worker: Worker) -> Inference:
    """The evaluation of a model that is not trained, on the worker's device."""
    return STRATEGIES[worker.device.strategy][1](worker)
