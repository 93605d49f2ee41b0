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
"""For each tensor outside the layers, this trainer's name and transformers' name."""

_LAYER_NAMES = {
    "attention.self.Wqkv.weight": "attn.Wqkv.weight",
    "attention.output.dense.weight": "attn.Wo.weight",
    "attention.output.LayerNorm.weight": "mlp_norm.weight",
    "intermediate.dense.weight": "mlp.Wi.weight",
    "output.dense.weight": "mlp.Wo.weight",
}
"""For each tensor of a layer, this trainer's name and transformers' name.

The output norm is missing here, because transformers counts it to the next layer (see ``make_name_table``).
"""


def from_modernbert(weights: Stored, config: ModernBertConfig, answers: bool) -> dict[str, StoredTensor]:
    """Return the tensors under this trainer's names.

    answers: True if ``classifier`` is the head that finds an answer's start and end. False if it is the head
    that classifies sequences.
    """
    table = {theirs: ours for ours, theirs in make_name_table(config).items()}
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
    table = make_name_table(config)
    return {table.get(name, name): tensor for name, tensor in weights.items()}


def make_name_table(config: ModernBertConfig) -> dict[str, str]:
    """Return a table from this trainer's names of all weights to transformers' names."""
    found = dict(_NAMES)
    for number in range(config.num_hidden_layers):
        ours, theirs = f"bert.encoder.layer.{number}", f"model.layers.{number}"
        found |= {f"{ours}.{name}": f"{theirs}.{other}" for name, other in _LAYER_NAMES.items()}
        # In transformers a layer's output norm is called the first norm of the next layer. After the last
        # layer it is called the final norm.
        is_last = number == config.num_hidden_layers - 1
        norm = "model.final_norm" if is_last else f"model.layers.{number + 1}.attn_norm"
        found[f"{ours}.output.LayerNorm.weight"] = f"{norm}.weight"
    return found
