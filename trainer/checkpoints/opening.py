"""Opening the checkpoint that a run starts from."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from torch import Tensor

from trainer.checkpoints.any_checkpoint import Checkpoint, StoredTensor
from trainer.checkpoints.filling import match_weights
from trainer.checkpoints.source import open_checkpoint
from trainer.config.model import ModelConfig
from trainer.update.worker import Runtime


def open_start(runtime: Runtime, shape: ModelConfig, path: str) -> Checkpoint:
    """Open the checkpoint that a run starts from, and log which parts of it are used.

    The result has an embedding for each token of the data. DataError if the vocabularies of checkpoint and
    data contradict each other.
    shape: the configured model.
    """
    config = runtime.config
    checkpoint = open_checkpoint(path, with_moments=config.start.start_moments)
    if checkpoint.choice:
        runtime.log(checkpoint.choice)
    for warning in checkpoint.warnings:
        runtime.log(f"warning: {warning}")
    if not config.is_finetuning:
        from trainer.checkpoints.vocabulary_fit import fit_vocabulary

        checkpoint = fit_vocabulary(checkpoint, shape, config, runtime.log)
    own = runtime.empty_model(shape).state_dict()
    head = runtime.task.head
    if config.finetuning.new_head and head is not None:
        left_out = _count_rows(checkpoint.weights, head)
        if left_out is not None:
            new = _count_rows(own, head)
            runtime.log(f"new_head: one of {new} rows is drawn; that of {path} with {left_out} is left out")
        checkpoint = _drop_head(checkpoint, head)
    found, missing = match_weights(own, shape, checkpoint)
    drawn = f"; drawn anew: {_list_parts(missing)}" if missing else ""
    left = _list_parts(name for name in checkpoint.weights if name not in found)
    runtime.log(f"taken from {path}: {_list_parts(found)}{drawn}{left and f'; left out: {left}'}")
    return checkpoint


def _list_parts(names: Iterable[str]) -> str:
    """Return the names of the model's parts to which the named tensors belong, as text for the log.

    For example, one of these parts is ``bert.pooler``.
    """
    return ", ".join(sorted({".".join(name.split(".")[:2]) for name in names}))


def _drop_head(checkpoint: Checkpoint, head: str) -> Checkpoint:
    """Return the checkpoint without the weights and moments of a head.

    head: prefix of the head's names.
    """
    weights = {name: one for name, one in checkpoint.weights.items() if not name.startswith(head)}
    moments = {
        key: one for key, one in checkpoint.moments.items() if not key.partition("/")[2].startswith(head)
    }
    return replace(checkpoint, weights=weights, moments=moments)


def _count_rows(weights: Mapping[str, Tensor | StoredTensor], head: str) -> int | None:
    """Return the number of rows in a head's weight, or None without such a head."""
    weight = weights.get(f"{head}weight")
    return weight.shape[0] if weight is not None and len(weight.shape) else None
