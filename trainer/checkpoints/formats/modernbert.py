"""ModernBERT's names in transformers, and in the original program, whose encoder is ``bert.``."""

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
"""Names outside of the layers, by this model's."""

_OF_LAYERS = {
    "attention.self.Wqkv.weight": "attn.Wqkv.weight",
    "attention.output.dense.weight": "attn.Wo.weight",
    "attention.output.LayerNorm.weight": "mlp_norm.weight",
    "intermediate.dense.weight": "mlp.Wi.weight",
    "output.dense.weight": "mlp.Wo.weight",
}
"""Names within a layer, by this model's. The norm behind it is the next layer's first, or the final one."""


def from_modernbert(weights: Stored, config: ModernBertConfig, answers: bool) -> dict[str, StoredTensor]:
    """The tensors under this model's names.

    answers: the classifier finds answers, else it classifies sequences.
    """
    table = {theirs: ours for ours, theirs in names_of(config).items()}
    if not answers:
        table = {theirs: ours for theirs, ours in table.items() if not ours.startswith("qa_outputs.")}
    found: dict[str, StoredTensor] = {}
    for name, tensor in weights.items():
        whole = re.sub(r"^(bert\.(?!encoder\.layer\.)|(?=(embeddings|layers|final_norm)\.))", "model.", name)
        found[table.get(whole, name)] = tensor
    return found


def to_modernbert(weights: Stored, config: ModernBertConfig) -> dict[str, StoredTensor]:
    """The tensors under transformers' names."""
    table = names_of(config)
    return {table.get(name, name): tensor for name, tensor in weights.items()}


def names_of(config: ModernBertConfig) -> dict[str, str]:
    """transformers' name of each weight, by this model's."""
    found = dict(_NAMES)
    for number in range(config.num_hidden_layers):
        ours, theirs = f"bert.encoder.layer.{number}", f"model.layers.{number}"
        found |= {f"{ours}.{name}": f"{theirs}.{other}" for name, other in _OF_LAYERS.items()}
        is_last = number == config.num_hidden_layers - 1
        norm = "model.final_norm" if is_last else f"model.layers.{number + 1}.attn_norm"
        found[f"{ours}.output.LayerNorm.weight"] = f"{norm}.weight"
    return found
