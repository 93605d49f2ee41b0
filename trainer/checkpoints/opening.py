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
    model_config = config.model.model_config
    with_moments = config.start.start_moments
    checkpoint = open_checkpoint(path, model_config=model_config, with_moments=with_moments)
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
    unused = [name for name in checkpoint.weights if name not in found]
    taken, drawn, left = name_parts(found, missing, unused)
    told = [f"taken from {path}: {taken}"]
    told += [f"drawn anew: {drawn}"] if drawn else []
    told += [f"left out: {left}"] if left else []
    runtime.log("; ".join(told))
    return checkpoint


def name_parts(*groups: Iterable[str]) -> list[str]:
    """Return, for each group of tensors, the parts of the model to which the tensors belong, as text.

    A part has a name of two words, for example ``bert.pooler``. If a part has tensors in several groups, its
    own parts are named instead, so that no part is named twice.

    >>> name_parts(["a.b.c.weight", "a.d.weight"], ["a.b.e.weight"])
    ['a.b.c, a.d', 'a.b.e']
    """
    listed = [list(group) for group in groups]
    owners: dict[str, set[int]] = {}
    for number, names in enumerate(listed):
        for name in names:
            for part in _list_prefixes(name):
                owners.setdefault(part, set()).add(number)
    return [", ".join(sorted({_find_own_part(name, owners) for name in names})) for names in listed]


def _find_own_part(name: str, owners: Mapping[str, set[int]]) -> str:
    """Return the largest part to which a tensor belongs and in which all tensors are of one group.

    owners: for each part the numbers of the groups that its tensors belong to.
    """
    return next((part for part in _list_prefixes(name) if len(owners[part]) == 1), name)


def _list_prefixes(name: str) -> list[str]:
    """Return the parts of the model to which a tensor belongs, from a name of two words to the full name."""
    words = name.split(".")
    return [".".join(words[:count]) for count in range(min(2, len(words)), len(words) + 1)]


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
