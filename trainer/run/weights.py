"""Loading of a checkpoint's weights into the model of an evaluation."""

from collections.abc import Callable
from functools import partial
from operator import call
from typing import Any

from trainer.checkpoints.source import read_weights_into
from trainer.model.headed import HeadedBert
from trainer.splitting.split_strategy import SplitInference
from trainer.splitting.split_tensors import read_split_weights
from trainer.update.inference import Inference
from trainer.update.worker import Runtime


def load_weights(
    runtime: Runtime, model: HeadedBert, inference: Inference, path: str, read: Callable[..., Any] = call
) -> bool:
    """Fill the model of every worker with the weights at ``path``.

    read: calls the function that it gets and returns the result, or None if the checkpoint was removed.
    Returns False if the checkpoint was removed. Raises DataError if it lacks the task's head.
    """
    if isinstance(inference, SplitInference):
        return bool(read_split_weights(runtime, model.config, inference, path, read))

    def fill_whole() -> bool:
        runtime.task.check_head(read_weights_into(model, path), path)
        return True

    if runtime.on_rank_0(partial(read, fill_whole)) is None:
        return False
    runtime.collective.broadcast(model.state_dict().values())
    return True
