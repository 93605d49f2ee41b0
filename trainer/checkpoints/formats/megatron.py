"""Names of a pre-norm BERT's tensors in transformers, where it is called MegatronBert.

In a pre-norm model a norm lies between two parts. This trainer names it, as in a BERT, after the part before
it. MegatronBert names the same norm after the part after it. For example, the norm after the embeddings is
called the norm before the first attention in MegatronBert. Only the names differ, the tensors are equal.
"""

import re

from trainer.checkpoints.any_checkpoint import Stored, StoredTensor

_LAYER = "bert.encoder.layer"
_NORM = re.compile(rf"{_LAYER}\.(\d+)\.(attention\.)?output\.LayerNorm\.(weight|bias)")
_EMBEDDINGS = "bert.embeddings.LayerNorm."


def to_megatron(weights: Stored, layers: int) -> dict[str, StoredTensor]:
    """Return the tensors under MegatronBert's names.

    layers: number of layers in the model.
    """
    return {_to_megatron(name, layers): tensor for name, tensor in weights.items()}


def from_megatron(weights: Stored, layers: int) -> dict[str, StoredTensor]:
    """Return the tensors of a MegatronBert under this trainer's names."""
    ours = [f"{_EMBEDDINGS}{kind}" for kind in ("weight", "bias")]
    for number in range(layers):
        for part in ("attention.output", "output"):
            ours += [f"{_LAYER}.{number}.{part}.LayerNorm.{kind}" for kind in ("weight", "bias")]
    table = {_to_megatron(name, layers): name for name in ours}
    return {table.get(name, name): tensor for name, tensor in weights.items()}


def is_megatron(weights: Stored) -> bool:
    """Return whether the names are MegatronBert's."""
    return "bert.encoder.ln.weight" in weights


def _to_megatron(name: str, layers: int) -> str:
    """Return MegatronBert's name for a tensor."""
    if name.startswith(_EMBEDDINGS):
        return f"{_LAYER}.0.attention.ln.{name.removeprefix(_EMBEDDINGS)}"
    norm = _NORM.fullmatch(name)
    if norm is None:
        return name
    # Every norm moves to the part that reads its output:
    # layer.3.attention.output.LayerNorm -> layer.3.ln (read by layer 3's feed-forward part)
    # layer.3.output.LayerNorm -> layer.4.attention.ln (read by layer 4's attention)
    # the last layer's output.LayerNorm -> encoder.ln
    number, of_attention, kind = int(norm[1]), norm[2], norm[3]
    if of_attention:
        return f"{_LAYER}.{number}.ln.{kind}"
    is_last = number + 1 == layers
    return f"bert.encoder.ln.{kind}" if is_last else f"{_LAYER}.{number + 1}.attention.ln.{kind}"
