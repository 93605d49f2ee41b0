"""Loading of weights from a checkpoint into a model that is evaluated."""

from collections.abc import Callable
from functools import partial
from typing import Any

from trainer.checkpoints.source import read_weights_into
from trainer.model.headed import HeadedBert
from trainer.splitting.split_strategy import SplitInference
from trainer.splitting.split_tensors import read_split_weights
from trainer.update.inference import Inference
from trainer.update.worker import Runtime


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def load_weights(
    runtime: Runtime, model: HeadedBert, inference: Inference, path: str, read: Callable[..., Any] = _call
) -> bool:
    """Load the weights of a checkpoint into the model of every worker.

    path: path of the checkpoint.
    read: function that calls another function. It returns that function's result, or None if the checkpoint
    was removed.
    Returns False if the checkpoint was removed. Raises DataError if it has no head (output layer) for the
    task.
    """
    if isinstance(inference, SplitInference):
        return bool(read_split_weights(runtime, model.config, inference, path, read))

    def fill_whole() -> bool:
        missing = read_weights_into(model, path, runtime.config.model.model_config)
        runtime.task.check_head(missing, path)
        return True

    if runtime.on_rank_0(partial(read, fill_whole)) is None:
        return False
    runtime.collective.broadcast(model.state_dict().values())
    return True
