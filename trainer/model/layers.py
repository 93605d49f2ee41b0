"""The layers of BERT's encoder. Their parameters have the same names as in Hugging Face's models."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trainer.config.model import ModelConfig
from trainer.data.batches import Sequences

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_new": partial(F.gelu, approximate="tanh"),
    "gelu_pytorch_tanh": partial(F.gelu, approximate="tanh"),
    "relu": F.relu,
    "silu": F.silu,
}
"""The activation functions by the names that Hugging Face uses. gelu_pytorch_tanh and gelu_new are the same
function.
"""


class LayerOutput(NamedTuple):
    """Output of a layer and input of the next layer: two tensors of shape (tokens, hidden).

    rows: the residual stream.
    normed: the input of the next layer's attention. It is the same tensor as ``rows``, unless norms come
    first (pre-norm).
    """

    rows: Tensor
    normed: Tensor


class EncoderOutput(LayerOutput):
    """Output of the last layer. A model that is called with it computes only the heads."""

    __slots__ = ()


class Norm(nn.LayerNorm):
    """Layer norm that computes in the type of its weights (fp32 under autocast), and returns the type of its
    input.
    """

    def __init__(self, config: ModelConfig) -> None:
        # the older torch of PopTorch has no argument ``bias``
        bias = {} if config.has_biases else {"bias": False}
        super().__init__(config.hidden_size, eps=config.layer_norm_eps, **bias)

    def forward(self, rows: Tensor) -> Tensor:
        normed: Tensor = super().forward(rows.to(self.weight.dtype))
        return normed.to(rows.dtype)


class Embeddings(nn.Module):
    """The sum of word, segment and position embeddings. Their norm is applied by ``Bert``."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(config.padded_vocab_size, config.hidden_size)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.LayerNorm = Norm(config)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor, position_ids: Tensor) -> Tensor:
        """Return the embeddings, shape (tokens, hidden). Each argument has shape (tokens,)."""
        words: Tensor = self.word_embeddings(input_ids)
        types: Tensor = self.token_type_embeddings(token_type_ids)
        places: Tensor = self.position_embeddings(position_ids)
        return words + types + places


class Dense(nn.Module):
    """A module with nothing but a linear layer named ``dense``, so that weights have Hugging Face's names."""

    def __init__(self, inputs: int, outputs: int, bias: bool = True) -> None:
        super().__init__()
        self.dense = nn.Linear(inputs, outputs, bias)


class NormedDense(Dense):
    """A linear layer with dropout, whose result is added to the residual stream, followed by a norm."""

    def __init__(self, inputs: int, config: ModelConfig, bias: bool = True) -> None:
        super().__init__(inputs, config.hidden_size, bias)
        self.LayerNorm = Norm(config)
        self.dropout = config.hidden_dropout_prob
        self.norm_first = config.megatron_residual_connection

    def add(self, change: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Add a change to the residual stream. Return (the new residual stream, the input of the next part).

        Both are the same tensor, unless norms come first (pre-norm). The residual stream gets the type of
        ``change``, which autocast has chosen.
        change: result of attention or feed-forward part.
        rows: the residual stream.
        """
        change = self.dense(change)
        rows = rows.to(change.dtype) + F.dropout(change, self.dropout, self.training)
        normed = self.LayerNorm(rows)
        return (rows if self.norm_first else normed), normed


EVERY = -1
"""Number that stands for an unlimited reach, with which a token sees its whole sequence. It is a number
because PyTorch's custom operations cannot take None.
"""


class SelfAttention(nn.Module):
    """Self-attention with separate weights for query, key and value, because LAMB scales the update of each
    weight.

    joins: True to compute query, key and value by one product where the sequences allow it. The backward pass
    then keeps a joined copy of the three weights.
    multiply: function that computes the one product, with the arguments of ``torch.nn.functional.linear``. It
    can be replaced, because FP8 needs another one.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads = config.num_attention_heads
        self.dropout = config.attention_probs_dropout_prob
        width = config.hidden_size
        self.joins = True
        self.multiply: Callable[[Tensor, Tensor, Tensor | None], Tensor] = F.linear
        self.query_key_scale = (width // self.heads) ** -0.25 if config.scale_query_key else None
        self.query, self.key, self.value = (nn.Linear(width, width, config.use_qkv_bias) for _ in range(3))

    def forward(self, rows: Tensor, sequences: Sequences) -> Tensor:
        query, key, value = self.project(rows, self.joins and sequences.one_product)
        scale = None
        if self.query_key_scale is not None:
            query = query * self.query_key_scale
            key = key * self.query_key_scale
            scale = 1.0
        dropout = self.dropout if self.training else 0.0
        return sequences.attend(query, key, value, dropout, scale).flatten(1)

    def project(self, rows: Tensor, one_product: bool) -> tuple[Tensor, ...]:
        """Return query, key and value, each of shape (tokens, heads, head size).

        one_product: True to compute all three by one matrix product.
        """
        parts = (self.query, self.key, self.value)
        if not one_product:
            return tuple(part(rows).view(len(rows), self.heads, -1) for part in parts)
        weight = torch.cat([part.weight for part in parts])
        bias = None if self.query.bias is None else torch.cat([part.bias for part in parts])
        return self.multiply(rows, weight, bias).view(len(rows), 3, self.heads, -1).unbind(1)


class Attention(nn.Module):
    """Self-attention and its output projection, as one module for Hugging Face's names."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self = SelfAttention(config)
        self.output = NormedDense(config.hidden_size, config, config.use_attention_projection_bias)


class Layer(nn.Module):
    """A layer of the encoder: self-attention, then a feed-forward network."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = Attention(config)
        self.intermediate = Dense(config.hidden_size, config.intermediate_size)
        self.output = NormedDense(config.intermediate_size, config)
        self.activation = ACTIVATIONS[config.hidden_act]

    def forward(self, rows: Tensor, normed: Tensor, sequences: Sequences) -> tuple[Tensor, Tensor]:
        """Return the residual stream and the attention's input for the next layer.

        rows: the residual stream before this layer.
        normed: the input of this layer's attention.
        sequences: computes the attention within each sequence.
        """
        rows, normed = self.attention.output.add(self.attention.self(normed, sequences), rows)
        return self.output.add(self.activation(self.intermediate.dense(normed)), rows)
