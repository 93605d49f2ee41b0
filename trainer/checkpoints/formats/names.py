"""Tables that translate other programs' tensor names to this trainer's."""

from trainer.checkpoints.any_checkpoint import OPTIONAL

PYTORCH = {
    ".dense_act.": ".dense.",
    ".gamma": ".weight",
    ".beta": ".bias",
}
"""Parts of tensor names in PyTorch programs, and what replaces them here.

They come from NVIDIA's and Habana's layers, and from early PyTorch versions of BERT.
"""

PYTORCH_DROPPED = ("bert.embeddings.position_ids", "bert.embeddings.token_type_ids")
"""Tensors in PyTorch files that are constants and not weights. They are left out."""

DENSE_ACT = (".intermediate.", ".pooler.", "cls.predictions.transform.")
"""Names after which NVIDIA's and Habana's programs call the layer ``dense_act`` instead of ``dense``."""

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
"""TensorFlow 1's names for the embeddings and the heads. Matrices in this table are not transposed.

All other names are translated by a rule in ``to_tensorflow``.
"""


def from_pytorch(name: str) -> str | None:
    """Return this trainer's name for a tensor of a PyTorch program, or None for a constant that is not a
    weight.

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
    """Return (this trainer's name, whether the matrix is transposed) for a variable of TensorFlow 1.

    Return None for a variable that does not belong to a BERT.
    """
    ours = next((ours for ours, theirs in TENSORFLOW.items() if theirs == name), None)
    if ours is not None:
        return ours, False
    path, _, last = name.replace("encoder/layer_", "encoder/layer/").rpartition("/")
    ends = {"kernel": "weight", "gamma": "weight", "bias": "bias", "beta": "bias"}
    if not path.startswith(("bert/", "cls/")) or last not in ends:
        return None
    return f"{path}/{ends[last]}".replace("/", "."), last == "kernel"
