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
"""Parts that wrappers add to a name. They may be anywhere in it, since any module may be wrapped."""

_WHOLE = "module"
"""First part of names that DataParallel, DistributedDataParallel and DeepSpeed add."""

_MODELS = ("bert", "roberta", "model", "auto_model")
"""First part of the encoder's tensor names in BERT, RoBERTa, ModernBERT and sentence-transformers."""

_WORDS = re.compile(r"(.*\.)?embeddings\.(word_embeddings|tok_embeddings)\.weight")

_OTHERS = {
    "base_model.model.": "an adapter of PEFT, which merge_and_unload() of PEFT puts into its model's weights",
    "distilbert.": "a DistilBERT",
    "electra.": "an ELECTRA",
    "deberta.": "a DeBERTa",
    "albert.": "an ALBERT",
    "mpnet.": "an MPNet",
    "longformer.": "a Longformer",
    "transformer.": "a transformer with names of its own",
}
"""For each prefix of tensor names, text that says what a file with such names contains."""


def unwrap_names(tensors: Stored, path: str) -> dict[str, StoredTensor]:
    """Return the tensors under the model's own names, in the same order.

    DataError if two tensors get the same name, and for tensors of another architecture.

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
    while parts[:1] == [_WHOLE]:
        parts = parts[1:]
    return ".".join(parts)


def _find_outer_prefix(names: Iterable[str]) -> str:
    """Return the prefix that all names share because the model is part of another object, else "".

    model.bert.embeddings.word_embeddings.weight (a Lightning module) -> "model."
    """
    names = list(names)
    # Find the word embeddings. What precedes `bert.embeddings...` in their name is the outer part, if all
    # other names begin with it too.
    words = next((found for name in names if (found := _WORDS.fullmatch(name))), None)
    before = (words[1] or "").split(".")[:-1] if words else []
    if len(before) < 2 or before[-1] not in _MODELS:
        return ""
    kept = before[:-1] if before[-1] != "auto_model" else before
    outer = ".".join(kept) + "."
    return outer if all(name.startswith(outer) for name in names) else ""


def _refuse_other_models(names: Iterable[str], path: str) -> None:
    """Raise DataError for tensors named as in another architecture."""
    for name in names:
        what = next((what for start, what in _OTHERS.items() if name.startswith(start)), None)
        if what is not None:
            raise DataError(f"{path}: holds {what} ({name}); expected a BERT, a RoBERTa or a ModernBERT")
