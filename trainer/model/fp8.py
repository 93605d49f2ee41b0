"""Linear layers that multiply in FP8, that is, in 8-bit floating-point numbers, by the library torchao.

For each of a layer's three products (its output, the gradient of its input and the gradient of its weight),
torchao multiplies both operands by scales, so that their largest values become the largest FP8 number, and
rounds them to 8 bits. Weights stay as they are, with the same names, shapes and types, so checkpoints do not
differ from those of other precisions.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

from bertdata.config.settings import require
from bertdata.errors import MissingExtraError, install_extra
from trainer.config.sections.update import FP8_MULTIPLE
from trainer.errors import name_missing_extra
from trainer.model.headed import HeadedBert
from trainer.model.layers import SelfAttention

_LIBRARY = "torchao"


def require_fp8_library() -> None:
    """Raise MissingExtraError unless the library that computes in FP8 is installed. It is not imported."""
    if find_spec(_LIBRARY) is None:
        raise MissingExtraError(f"precision fp8 needs the package {_LIBRARY}: {install_extra('fp8')}")


def convert_linear_layers(model: HeadedBert, recipe: str, emulates: bool) -> str:
    """Let the linear layers of the encoder multiply in FP8, except those of its first and its last layer.

    The embeddings, the first and last layer and the heads stay in bf16, because their roundings change the
    loss the most. The model may be on the meta device. It must have all its layers, and it is converted
    before anything is compiled. Returns a line for the log.
    recipe: one of FP8_RECIPES.
    emulates: True to round operands to FP8 and multiply them in fp32, which every device can do.
    Raises SettingsError for a model without layers between the first and the last, or with sizes that cannot
    be multiplied in FP8.
    """
    layers = list(model.bert.encoder.layer)
    last = len(layers) - 1
    require(
        last >= 2,
        f"precision fp8: the model has {len(layers)} layers, expected 3 or more, because the first and the "
        "last stay in bf16",
    )
    for name in ("hidden_size", "intermediate_size"):
        size = getattr(model.config, name)
        require(
            size % FP8_MULTIPLE == 0,
            f"precision fp8: {name} is {size}, expected a multiple of {FP8_MULTIPLE}",
        )
    library = _import_library()
    # All layers share the settings and the function, so that a compiler finds equal layers and can use the
    # same graph for all of them.
    settings = replace(library.Float8LinearConfig.from_recipe_name(recipe), emulate=emulates)
    multiply = make_joined_product(settings)
    for layer in layers[1:last]:
        library.convert_to_float8_training(layer, config=settings)
        for module in layer.modules():
            if isinstance(module, SelfAttention):
                module.multiply = multiply
    emulated = ", emulated" if emulates else ""
    return (
        f"precision fp8, recipe {recipe}{emulated}: linear layers of encoder layers 1 to {last - 1}; "
        f"layers 0 and {last}, embeddings and heads in bf16"
    )


def make_joined_product(settings: Any) -> Callable[[Tensor, Tensor, Tensor | None], Tensor]:
    """Return a function like ``torch.nn.functional.linear`` that multiplies as torchao's linear layer does.

    torchao converts modules that have one weight. It has no public function for the product with several
    joined weights, such as those of query, key and value, so the function of its layer is called directly.
    With one scale for each matrix, joined weights share their scale.
    settings: a ``Float8LinearConfig``.
    """
    library = _import_library()
    compute = library.float8_linear.matmul_with_hp_or_float8_args
    # A layer without values holds the settings of the three products in the form that the function takes.
    with torch.device("meta"):
        products = library.convert_to_float8_training(nn.Linear(1, 1), config=settings).linear_mm_config

    def multiply(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        product: Tensor = compute.apply(rows, weight.t(), products, settings)
        return product if bias is None else product + bias.to(product.dtype)

    return multiply


def _import_library() -> Any:
    """Import torchao's FP8 layers and return their module.

    torchao warns at its import of kernels that this machine cannot load. They are for other formats than FP8,
    so the warnings are not shown. Raises MissingExtraError if torchao cannot be imported.
    """
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with name_missing_extra(_LIBRARY, "fp8"):
            import torchao.float8.float8_linear
    finally:
        logging.disable(before)
    return torchao.float8
