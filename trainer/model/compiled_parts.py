"""Compiling an encoder part by part: the embeddings by one graph, all layers of a kind by another.

A graph of the whole model takes time for each of its layers, although all layers are alike. BERT has one kind
of layer. ModernBERT has two: layers that attend to the whole sequence, and layers that attend to a window.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from trainer.data.batches import Batch
from trainer.model.bert import Bert
from trainer.model.layers import LayerOutput

CompilePart = Callable[[Callable[..., Any]], Callable[..., Any]]
"""A function that takes a function and returns it compiled. Each device has its own."""


def compile_encoder(bert: Bert, compile_part: CompilePart) -> None:
    """Compile the embeddings and the layers of an encoder in place. Its weights keep their names.

    PyTorch stores compiled code with the Python code that was compiled. All layers of a class have the same
    method ``forward``, and their weights are inputs of the graph. So a graph that was made for one layer also
    serves the others, unless they differ in a setting.
    """
    # Only the methods are replaced, not the modules. So the hooks of a layer, such as those of FSDP2, and the
    # seeding of its dropout run between the graphs, and a layer may be computed again in the backward pass.
    bert.embed = compile_part(_make_layer_input(bert.embed, bert.norm_first))  # type: ignore[method-assign]
    for layer in bert.encoder.layer:
        if next(layer.parameters(), None) is not None:  # layers of other workers have no weights
            layer.forward = compile_part(layer.forward)


def _make_layer_input(embed: Callable[[Batch], LayerOutput], norm_first: bool) -> Callable[..., LayerOutput]:
    """Return a function like ``embed`` whose results look to the compiler like the results of a layer.

    Otherwise the first layer would need a graph of its own. It would get fp32 tensors where other layers get
    16-bit tensors, or the same tensor twice where other layers get two tensors.
    norm_first: False if a layer returns the same tensor twice.
    """

    def embed_as_layer(batch: Batch) -> LayerOutput:
        rows, normed = embed(batch)
        first = _cast_like_product(rows)
        if not norm_first:
            return LayerOutput(first, first)
        return LayerOutput(first, first.view_as(first) if normed is rows else _cast_like_product(normed))

    return embed_as_layer


def _cast_like_product(rows: Tensor) -> Tensor:
    """Return the tensor in the type that autocast gives to the result of a matrix product.

    The first layer would cast its input to this type itself.
    """
    device = rows.device.type
    return rows.to(torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else rows
