"""Activation functions by Hugging Face's names."""

from collections.abc import Callable
from functools import partial

from torch import Tensor
from torch.nn import functional as F

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_new": partial(F.gelu, approximate="tanh"),
    "gelu_pytorch_tanh": partial(F.gelu, approximate="tanh"),
    "relu": F.relu,
    "silu": F.silu,
}
"""The functions by name; gelu_pytorch_tanh is another name of gelu_new."""
