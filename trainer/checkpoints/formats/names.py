"""Tables that translate other programs' tensor names to this trainer's."""

from trainer.checkpoints.any_checkpoint import OPTIONAL

PYTORCH = {
    ".dense_act.": ".dense.",
    ".gamma": ".weight",
    ".beta": ".bias",
}
"""Parts of names in PyTorch programs and their replacement.

From NVIDIA's and Habana's layers, and early ports.
"""

PYTORCH_DROPPED = ("bert.embeddings.position_ids", "bert.embeddings.token_type_ids")
"""Tensors that are not parameters."""

DENSE_ACT = (".intermediate.", ".pooler.", "cls.predictions.transform.")
"""Places where the layer ``dense`` is called ``dense_act`` in NVIDIA's and Habana's programs."""

TENSORFLOW = {
    "bert.embeddings.word_embeddings.weight": "bert/embeddings/word_embeddings",
    "bert.embeddings.position_embeddings.weight": "bert/embeddings/position_embeddings",
    "bert.embeddings.token_type_embeddings.weight": "bert/embeddings/token_type_embeddings",
    "cls.predictions.bias": "cls/predictions/output_bias",
    "cls.seq_relationship.weight": "cls/seq_relationship/output_weights",
    "cls.seq_relationship.bias": "cls/seq_relationship/output_bias",
    "qa_outputs.weight": "cls/squad/output_weights",
    "qa_outputs.bias": "cls/squad/output_bias",
    "classifier.weight": "output_weights",
    "classifier.bias": "output_bias",
}
"""TensorFlow 1's names of embeddings and heads, none of which is transposed.

All other names are translated by a rule, in ``to_tensorflow``.
"""


def from_pytorch(name: str) -> str | None:
    """Return this trainer's name for a tensor of a PyTorch program, or None if it is not a parameter.

    For example, embeddings.LayerNorm.gamma becomes bert.embeddings.LayerNorm.weight.
    """
    if not name.startswith(("bert.", *OPTIONAL)):
        name = f"bert.{name}"
    for old, new in PYTORCH.items():
        name = name.replace(old, new)
    return None if name in PYTORCH_DROPPED else name


def to_nvidia(name: str) -> str:
    """Return the name in NVIDIA's and Habana's programs."""
    layer, _, last = name.rpartition(".dense.")
    return f"{layer}.dense_act.{last}" if layer and f"{layer}.".endswith(DENSE_ACT) else name


def to_tensorflow(name: str) -> tuple[str, bool]:
    """Return (name in TensorFlow 1, whether the matrix is transposed there).

    bert.encoder.layer.3.output.dense.weight -> (bert/encoder/layer_3/output/dense/kernel, True)
    """
    if name in TENSORFLOW:
        return TENSORFLOW[name], False
    path, _, last = name.replace("encoder.layer.", "encoder.layer_").rpartition(".")
    is_norm = path.endswith("LayerNorm")
    kinds = {"weight": "gamma" if is_norm else "kernel", "bias": "beta" if is_norm else "bias"}
    return f"{path}.{kinds[last]}".replace(".", "/"), last == "weight" and not is_norm


def from_tensorflow(name: str) -> tuple[str, bool] | None:
    """Return (this trainer's name, whether it is transposed) for a TensorFlow 1 variable, or None."""
    ours = next((ours for ours, theirs in TENSORFLOW.items() if theirs == name), None)
    if ours is not None:
        return ours, False
    path, _, last = name.replace("encoder/layer_", "encoder/layer/").rpartition("/")
    ends = {"kernel": "weight", "gamma": "weight", "bias": "bias", "beta": "bias"}
    if not path.startswith(("bert/", "cls/")) or last not in ends:
        return None
    return f"{path}/{ends[last]}".replace("/", "."), last == "kernel"
