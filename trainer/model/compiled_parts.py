"""Compiling an encoder part by part: the embeddings by one graph, all layers of a kind by another.

A graph of the whole model takes time for each of its layers, although all layers are alike. BERT has one kind
of layer. ModernBERT has two: layers that attend to the whole sequence, and layers that attend to a window.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from trainer.data.batches import Batch
from trainer.model.bert import Bert
from trainer.model.layers import LayerOutput

CompilePart = Callable[[Callable[..., Any]], Callable[..., Any]]
"""A function that takes a function and returns it compiled. Each device has its own."""


def compile_encoder(bert: Bert, compile_part: CompilePart) -> None:
    """Compile the embeddings and the layers of an encoder in place. Its weights keep their names.

    The layers share one compiled function, whose arguments are the layer and its input. The weights of the
    layer are inputs of the graph. So a graph that was made for one layer also serves the others, unless they
    differ in a setting.
    """
    # Only methods are replaced, not modules. So the hooks of a layer, such as those of FSDP2, and the seeding
    # of its dropout run between the graphs, and a layer may be computed again in the backward pass.
    bert.embed = compile_part(_make_layer_input(bert.embed, bert.norm_first))  # type: ignore[method-assign]
    run_layer = compile_part(_run_layer)
    for layer in bert.encoder.layer:
        if next(layer.parameters(), None) is not None:  # layers of other workers have no weights
            layer.forward = partial(run_layer, layer)


def _run_layer(layer: nn.Module, rows: Tensor, normed: Tensor, sequences: object) -> tuple[Tensor, Tensor]:
    """Return the result of a layer's forward pass."""
    # The layer gets views of its input. PyTorch decides which tensors the backward pass keeps and which it
    # computes again. It does not compute a sum again whose terms are used elsewhere, but it follows this rule
    # only for tensors that the graph itself has made, not for the arguments of the graph. Without the views,
    # the sum after the attention would be computed again, which takes another kernel and 4 % more bytes. The
    # compiler removes a view of the same shape, so there are two views of different shapes.
    viewed = rows.unsqueeze(0).squeeze(0)
    also_viewed = viewed if normed is rows else normed.unsqueeze(0).squeeze(0)
    output: tuple[Tensor, Tensor] = type(layer).forward(layer, viewed, also_viewed, sequences)
    return output


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
