"""The names of a ModernBERT's tensors in transformers and in the original program, and their translation to
this trainer's names. In the original program the encoder's names begin with ``bert.``.
"""

import re

from trainer.checkpoints.any_checkpoint import Stored, StoredTensor
from trainer.config.modernbert import ModernBertConfig

_NAMES = {
    "bert.embeddings.word_embeddings.weight": "model.embeddings.tok_embeddings.weight",
    "bert.embeddings.LayerNorm.weight": "model.embeddings.norm.weight",
    "cls.predictions.transform.dense.weight": "head.dense.weight",
    "cls.predictions.transform.LayerNorm.weight": "head.norm.weight",
    "cls.predictions.bias": "decoder.bias",
    "cls.predictions.decoder.weight": "decoder.weight",
    **{f"qa_outputs.{name}": f"classifier.{name}" for name in ("weight", "bias")},
}
"""transformers' names for tensors outside the layers, by this trainer's."""

_OF_LAYERS = {
    "attention.self.Wqkv.weight": "attn.Wqkv.weight",
    "attention.output.dense.weight": "attn.Wo.weight",
    "attention.output.LayerNorm.weight": "mlp_norm.weight",
    "intermediate.dense.weight": "mlp.Wi.weight",
    "output.dense.weight": "mlp.Wo.weight",
}
"""transformers' names for tensors in a layer, by this trainer's.

A layer's last norm is renamed separately.
"""


def from_modernbert(weights: Stored, config: ModernBertConfig, answers: bool) -> dict[str, StoredTensor]:
    """Return the tensors under this trainer's names.

    answers: whether the classifier finds answers, rather than classifying sequences.
    """
    table = {theirs: ours for ours, theirs in map_names(config).items()}
    if not answers:
        table = {theirs: ours for theirs, ours in table.items() if not ours.startswith("qa_outputs.")}
    found: dict[str, StoredTensor] = {}
    for name, tensor in weights.items():
        # The original program's encoder is `bert.`, and transformers' base class has no prefix at all. Both
        # become transformers' `model.` before the table applies: bert.layers.0.x -> model.layers.0.x.
        whole = re.sub(r"^(bert\.(?!encoder\.layer\.)|(?=(embeddings|layers|final_norm)\.))", "model.", name)
        found[table.get(whole, name)] = tensor
    return found


def to_modernbert(weights: Stored, config: ModernBertConfig) -> dict[str, StoredTensor]:
    """Return the tensors under transformers' names."""
    table = map_names(config)
    return {table.get(name, name): tensor for name, tensor in weights.items()}


def map_names(config: ModernBertConfig) -> dict[str, str]:
    """Return transformers' name for each weight, by this trainer's."""
    found = dict(_NAMES)
    for number in range(config.num_hidden_layers):
        ours, theirs = f"bert.encoder.layer.{number}", f"model.layers.{number}"
        found |= {f"{ours}.{name}": f"{theirs}.{other}" for name, other in _OF_LAYERS.items()}
        # A layer's output norm is the next layer's first norm in transformers, or the final norm.
        is_last = number == config.num_hidden_layers - 1
        norm = "model.final_norm" if is_last else f"model.layers.{number + 1}.attn_norm"
        found[f"{ours}.output.LayerNorm.weight"] = f"{norm}.weight"
    return found
