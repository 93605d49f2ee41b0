"""Removing what PyTorch's wrappers and other programs add to the names of tensors."""

import re
from collections.abc import Iterable

from bertdata.errors import DataError
from trainer.checkpoints.any_checkpoint import Stored, StoredTensor

_WRAPPERS = {
    "_orig_mod": "torch.compile",
    "_fsdp_wrapped_module": "FullyShardedDataParallel",
    "_checkpoint_wrapped_module": "checkpoint_wrapper",
}
"""Parts that PyTorch's wrappers add to the names of tensors, and the wrapper that adds each.

A part may be anywhere in a name, because any module of a model can be wrapped.
"""

_PARALLEL_PREFIX = "module"
"""The part that DataParallel, DistributedDataParallel and DeepSpeed put at the beginning of each name."""

_ENCODER_PREFIXES = ("bert", "roberta", "model", "auto_model")
"""The part with which the names of the encoder's tensors begin: in BERT, in RoBERTa, in ModernBERT and in
models of sentence-transformers.
"""

_WORDS = re.compile(r"(.*\.)?embeddings\.(word_embeddings|tok_embeddings)\.weight")

_UNREADABLE_PREFIXES = {
    "base_model.model.": "an adapter of PEFT, which merge_and_unload() of PEFT puts into its model's weights",
    "distilbert.": "a DistilBERT",
    "electra.": "an ELECTRA",
    "deberta.": "a DeBERTa",
    "albert.": "an ALBERT",
    "mpnet.": "an MPNet",
    "longformer.": "a Longformer",
    "transformer.": "a transformer with names of its own",
}
"""Prefixes of tensor names that this trainer cannot read, and what a file with such names contains."""


def unwrap_names(tensors: Stored, path: str) -> dict[str, StoredTensor]:
    """Return the tensors under the model's own names, in the same order.

    DataError if two tensors get the same name, or if tensors have the names of another architecture. For
    example, the names of a model compiled by torch.compile inside DataParallel lose two parts:

        module._orig_mod.bert.pooler.dense.bias -> bert.pooler.dense.bias
    """
    found = dict[str, StoredTensor]()
    for name, tensor in tensors.items():
        plain = _remove_wrappers(name)
        if plain in found:
            raise DataError(f"{path}: holds {plain} twice, once as {name}; expected each tensor once")
        found[plain] = tensor
    outer = _find_outer_prefix(found)
    found = {name.removeprefix(outer): tensor for name, tensor in found.items()}
    _refuse_other_models(found, path)
    return found


def _remove_wrappers(name: str) -> str:
    """Return the name without the wrappers' parts."""
    parts = [part for part in name.split(".") if part not in _WRAPPERS]
    while parts[:1] == [_PARALLEL_PREFIX]:
        parts = parts[1:]
    return ".".join(parts)


def _find_outer_prefix(names: Iterable[str]) -> str:
    """Return the prefix that all names have because the model is an attribute of another object, or "".

    For example, if a Lightning module has the model as its attribute ``model``, the name
    model.bert.embeddings.word_embeddings.weight gives the prefix "model.".
    """
    names = list(names)
    # Find the word embeddings. What precedes `bert.embeddings...` in their name is the outer part, if all
    # other names begin with it too.
    words = next((found for name in names if (found := _WORDS.fullmatch(name))), None)
    before = (words[1] or "").split(".")[:-1] if words else []
    if len(before) < 2 or before[-1] not in _ENCODER_PREFIXES:
        return ""
    kept = before[:-1] if before[-1] != "auto_model" else before
    outer = ".".join(kept) + "."
    return outer if all(name.startswith(outer) for name in names) else ""


def _refuse_other_models(names: Iterable[str], path: str) -> None:
    """Raise DataError for tensors named as in another architecture."""
    for name in names:
        what = next((what for start, what in _UNREADABLE_PREFIXES.items() if name.startswith(start)), None)
        if what is not None:
            raise DataError(f"{path}: holds {what} ({name}); expected a BERT, a RoBERTa or a ModernBERT")
