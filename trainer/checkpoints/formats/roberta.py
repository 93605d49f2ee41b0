"""Names and positions of RoBERTa's tensors in transformers.

A RoBERTa has the same tensors as a BERT that is trained on masked words only.
"""

from torch.nn import functional as F

from bertdata.errors import SettingsError
from trainer.checkpoints.any_checkpoint import Stored, StoredTensor
from trainer.config.roberta import RobertaConfig
from trainer.model.bert import PAIR_HEAD

_NAMES = {
    "bert.": "roberta.",
    "cls.predictions.transform.dense.": "lm_head.dense.",
    "cls.predictions.transform.LayerNorm.": "lm_head.layer_norm.",
    "cls.predictions.bias": "lm_head.bias",
    "cls.predictions.decoder.": "lm_head.decoder.",
    "classifier.": "classifier.out_proj.",
}
"""Prefixes of this trainer's tensor names, and the prefixes in transformers' RoBERTa that replace them."""

_POOLER, _HEAD = "bert.pooler.dense.", "classifier.dense."
_POSITIONS = "bert.embeddings.position_embeddings.weight"


def from_roberta(weights: Stored, config: RobertaConfig) -> dict[str, StoredTensor]:
    """Return the tensors under this trainer's names.

    Rows at the beginning of the position embeddings that the model never reads are removed.
    """
    tables = ("roberta.embeddings.position_ids", "roberta.embeddings.token_type_ids")
    table = {_HEAD: _POOLER, **{theirs: ours for ours, theirs in _NAMES.items()}}
    found = {
        _replace_prefix(name, table): tensor
        for name, tensor in weights.items()
        if not name.startswith(tables)
    }
    return _add_position_rows(found, -config.unread_positions)


def to_roberta(weights: Stored, config: RobertaConfig) -> dict[str, StoredTensor]:
    """Return the tensors under RoBERTa's names.

    Rows of zeros are added at the beginning of the position embeddings, where transformers' RoBERTa has rows
    that it never reads. With a classification head, the pooler becomes the head's dense layer. With a SQuAD
    head, the pooler is left out. SettingsError for a next-sentence head, which no RoBERTa of transformers
    has.
    """
    if any(name.startswith(PAIR_HEAD) for name in weights):
        head = f"the model has a head {PAIR_HEAD[:-1]}, which no RoBERTa of transformers has"
        raise SettingsError(f"model_type roberta: {head}; it is a BERT (model_type bert)")
    found = _add_position_rows(weights, config.unread_positions)
    table = dict(_NAMES)
    if any(name.startswith("classifier.") for name in weights):
        table = {_POOLER: _HEAD, **_NAMES}
    elif any(name.startswith("qa_outputs.") for name in weights):
        found = {name: tensor for name, tensor in found.items() if not name.startswith(_POOLER)}
    return {_replace_prefix(name, table): tensor for name, tensor in found.items()}


def add_second_bias(weights: dict[str, StoredTensor]) -> dict[str, StoredTensor]:
    """Return the weights with the bias of the word logits stored a second time, under transformers' older
    name.

    Releases before 4.51 read only the older name, and use zeros if it is missing.
    """
    bias = weights.get("lm_head.bias")
    return weights if bias is None else {**weights, "lm_head.decoder.bias": bias}


def _replace_prefix(name: str, table: dict[str, str]) -> str:
    """Replace the prefix of a name. Return a name without a prefix in the table unchanged.

    table: {old prefix: new prefix}.
    """
    start = next((start for start in table if name.startswith(start)), None)
    return name if start is None else table[start] + name.removeprefix(start)


def _add_position_rows(weights: Stored, more: int) -> dict[str, StoredTensor]:
    """Add ``more`` rows of zeros before the first row of the position embeddings. Return the changed tensors.

    more: a negative number removes rows at the beginning.
    """
    found = dict(weights)
    if (table := found.get(_POSITIONS)) is not None:
        rows, width = table.shape
        found[_POSITIONS] = table.changed((rows + more, width), lambda whole: F.pad(whole, (0, 0, more, 0)))
    return found
