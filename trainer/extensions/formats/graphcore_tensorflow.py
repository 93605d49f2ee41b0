"""Variables of Graphcore's TensorFlow 1 programs under Google's names.

The projection of the attention and the norms have names of their own; query, key and value are one variable,
whose columns are those of all three, one after the other (graphcore/examples, Models/modeling_ipu.py).
"""

import re

from trainer.checkpoint.stored import StoredTensor

_JOINED = re.compile(r"(bert/encoder/layer_[0-9]+/attention/self)/qkv_(weight|bias)")
_THIRDS = ("query", "key", "value")
_KINDS = {"weight": "kernel", "bias": "bias"}
_EXCHANGED = {"/attention/projection/": "/attention/output/", "/GroupNorm/": "/LayerNorm/"}


def google_names(variable: str) -> list[str]:
    """The variable's name in Google's program; three for query, key and value in one."""
    if joined := _JOINED.fullmatch(variable):
        return [f"{joined[1]}/{third}/{_KINDS[joined[2]]}" for third in _THIRDS]
    for graphcores, googles in _EXCHANGED.items():
        variable = variable.replace(graphcores, googles)
    return [f"bert/{variable}" if variable.startswith("pooler/") else variable]


def third(tensor: StoredTensor, number: int) -> StoredTensor:
    """The columns of query (0), key (1) or value (2) of a variable that has all three."""
    width = tensor.shape[-1] // len(_THIRDS)
    first = number * width
    return tensor.changed((*tensor.shape[:-1], width), lambda whole: whole[..., first : first + width])
