"""ModernBERT's encoder (Warner et al. 2024): norms first, no biases, gated feed-forward, rotary positions.

In most layers a token sees only a window of its sequence. A layer object contains the norms that come after
its attention and after its feed-forward part. So its last norm is the first norm of the next layer, or the
encoder's final norm. The first layer's attention reads the embeddings directly.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertdata.examples.columns import Array
from trainer.config.model import ModelConfig
from trainer.config.modernbert import ModernBertConfig
from trainer.data.batches import Batch, FlatAttention, Sequences
from trainer.model.bert import Bert, attend_with_pytorch, find_initial_deviation
from trainer.model.layers import ACTIVATIONS, Dense, LayerOutput, Norm, NormedDense

Rotation = tuple[Tensor, Tensor]
"""Cosine and sine of each token's rotation angles, both fp32 with shape (T, 1, half of the head size)."""

_DEPTH_SCALED_PATHS = ("output.dense", "transform.dense", "predictions.decoder")
"""Endings of the names of modules whose initial values are smaller the more layers the model has."""

_CLASSIFIERS = ("classifier", "qa_outputs")


@dataclass(frozen=True, slots=True)
class RotarySequences:
    """The sequences of a batch, with the rotations of their tokens for global layers and for local layers.

    Tokens of global layers see their whole sequence, those of local layers a window of it.
    """

    sequences: Sequences
    of_global: Rotation
    of_local: Rotation

    @classmethod
    def of(cls, sequences: Sequences, positions: Tensor, config: ModernBertConfig) -> "RotarySequences":
        """Return the sequences with their rotations.

        positions: position of each token in its sequence.
        """
        size, thetas = (
            config.hidden_size // config.num_attention_heads,
            (config.global_rope_theta, config.local_rope_theta),
        )
        return cls(sequences, *(find_rotation(positions, size, theta) for theta in thetas))


class RotaryAttention(nn.Module):
    """Self-attention with rotary positions, over whole sequences or within a window around each token.

    Query, key and value share one weight matrix as in the original program, whose optimiser treats it as one
    weight.
    """

    def __init__(self, config: ModernBertConfig, number: int) -> None:
        super().__init__()
        self.heads = config.num_attention_heads
        self.dropout = config.attention_probs_dropout_prob
        self.reach = None if config.is_global(number) else config.reach
        self.Wqkv = nn.Linear(config.hidden_size, 3 * config.hidden_size, bias=False)

    def forward(self, rows: Tensor, context: RotarySequences) -> Tensor:
        joined = self.Wqkv(rows).view(len(rows), 3, self.heads, -1)
        rotation = context.of_global if self.reach is None else context.of_local
        query, key, value = Rotate.apply(joined, *rotation)  # type: ignore[no-untyped-call]
        dropout = self.dropout if self.training else 0.0
        return context.sequences.attend(query, key, value, dropout, reach=self.reach).flatten(1)


class ProjectedAttention(nn.Module):
    """Self-attention and its output projection."""

    def __init__(self, config: ModernBertConfig, number: int) -> None:
        super().__init__()
        self.self = RotaryAttention(config, number)
        self.output = NormedDense(config.hidden_size, config, bias=False)


class RotaryLayer(nn.Module):
    """A layer: self-attention and a gated feed-forward network."""

    def __init__(self, config: ModernBertConfig, number: int) -> None:
        super().__init__()
        width, inner = config.hidden_size, config.intermediate_size
        self.attention = ProjectedAttention(config, number)
        self.intermediate = Dense(width, 2 * inner, bias=False)
        self.output = NormedDense(inner, config, bias=False)
        self.output.dropout = 0.0
        self.dropout = config.mlp_dropout
        self.activation = ACTIVATIONS[config.hidden_act]

    def forward(self, rows: Tensor, normed: Tensor, context: RotarySequences) -> tuple[Tensor, Tensor]:
        """Return the residual stream and the attention's input for the next layer.

        rows: the residual stream before this layer.
        normed: the input of this layer's attention.
        context: the sequences with their rotations.
        """
        rows, normed = self.attention.output.add(self.attention.self(normed, context), rows)
        values, gates = self.intermediate.dense(normed).chunk(2, -1)
        gated = F.dropout(self.activation(values) * gates, self.dropout, self.training)
        return self.output.add(gated, rows)


class WordEmbeddings(nn.Module):
    """The word embeddings and their norm."""

    def __init__(self, config: ModernBertConfig) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(config.padded_vocab_size, config.hidden_size)
        self.LayerNorm = Norm(config)
        self.dropout = config.embedding_dropout

    def forward(self, input_ids: Tensor) -> Tensor:
        """Return the embeddings, shape (tokens, hidden). input_ids has shape (tokens,)."""
        rows = self.LayerNorm(self.word_embeddings(input_ids))
        return F.dropout(rows, self.dropout, self.training)


class ModernBert(Bert):
    """The encoder, which turns token ids into a vector for each token. Tasks compute vectors of sequences
    themselves.
    """

    embeddings_class = WordEmbeddings

    def __init__(
        self, config: ModernBertConfig, pools: bool = False, attention: FlatAttention = attend_with_pytorch
    ) -> None:
        super().__init__(config, pools=False, attention=attention)
        self.rotary = config

    @staticmethod
    def new_layer(config: ModelConfig, number: int) -> nn.Module:
        return RotaryLayer(_require_modernbert(config), number)

    def sequences(self, batch: Batch) -> RotarySequences:
        return RotarySequences.of(batch.sequences(self.attention), batch.positions(), self.rotary)

    def embed(self, batch: Batch) -> LayerOutput:
        rows = self.embeddings(batch.input_ids.reshape(-1))
        return LayerOutput(rows, rows)

    def initialise(self, values: Tensor, path: str, config: ModelConfig) -> None:
        """Fill ``values`` with random numbers from a normal distribution without its tails.

        path: name of the weight's module in the whole model.
        """
        std = find_initial_deviation(path, config, _DEPTH_SCALED_PATHS)
        if path in _CLASSIFIERS:
            std = config.hidden_size**-0.5
        end = _require_modernbert(config).initializer_cutoff_factor * std
        nn.init.trunc_normal_(values, std=std, a=-end, b=end)

    @staticmethod
    def operations(lengths: Array, shape: ModelConfig) -> int:
        config = _require_modernbert(shape)
        width, inner, count = config.hidden_size, config.intermediate_size, config.num_hidden_layers
        layer = int(lengths.sum()) * (4 * width * width + 3 * width * inner)
        whole = sum(map(config.is_global, range(count)))
        pairs = whole * int(lengths @ lengths) + (count - whole) * count_seen_pairs(lengths, config.reach)
        return count * layer + 2 * width * pairs


class Rotate(torch.autograd.Function):
    """Split joined query, key and value, and rotate query and key by each token's angles.

    The input has shape (T, 3, heads, head size). Value j and value j + half of the head size form a pair,
    which is rotated by angle j of the token, in fp32. The backward pass rotates back, and writes directly
    into the gradient of the joined tensor.
    """

    @staticmethod
    def forward(ctx: Any, joined: Tensor, cosine: Tensor, sine: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        ctx.save_for_backward(cosine, sine)
        query, key, value = joined.unbind(1)
        return rotate(query, cosine, sine), rotate(key, cosine, sine), value.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        cosine, sine = ctx.saved_tensors
        query, key, value = gradients
        turned = rotate(query, cosine, -sine), rotate(key, cosine, -sine), value
        return torch.stack(turned, 1), None, None


def rotate(heads: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Return vectors of shape (T, heads, head size), each rotated by its token's angles.

    Nothing is changed in place, and each half of a vector is cast separately, so that a compiler can read and
    write each value once.
    """
    first, second = heads.chunk(2, -1)
    one = torch.addcmul(first * cosine, second, sine, value=-1)
    other = torch.addcmul(second * cosine, first, sine)
    return torch.cat((one.to(heads.dtype), other.to(heads.dtype)), -1)


@torch.library.custom_op("bertdata::rotation", mutates_args=())
def find_rotation(positions: Tensor, size: int, theta: float) -> tuple[Tensor, Tensor]:
    """Return cosine and sine of the rotation angles of tokens at these positions.

    Angle j is position * theta^(-2j / size) (Su et al. 2021). This is a custom operation of PyTorch, because
    a compiler would otherwise compute the cosines and sines again in each layer.
    """
    steps = torch.arange(0, size, 2, dtype=torch.float32, device=positions.device)
    angles = positions.float()[:, None] * (1.0 / theta ** (steps / size))
    return angles.cos()[:, None], angles.sin()[:, None]


@find_rotation.register_fake
def _make_empty_rotation(positions: Tensor, size: int, theta: float) -> tuple[Tensor, Tensor]:
    made = positions.new_empty((len(positions), 1, size // 2), dtype=torch.float32)
    return made, torch.empty_like(made)


def count_seen_pairs(lengths: Array, reach: int) -> int:
    """Return the number of pairs of tokens that see each other: in the same sequence, at most ``reach``
    apart.

    lengths: number of tokens of each sequence.
    """
    seen = lengths.clip(max=reach + 1)
    # The first reach + 1 tokens all see each other. Each further token adds 2 * reach + 1 pairs.
    short = seen * seen
    return int((short + (lengths - seen) * (2 * reach + 1)).sum())


def _require_modernbert(config: ModelConfig) -> ModernBertConfig:
    """Return the configuration as a ModernBertConfig. It must be one."""
    assert isinstance(config, ModernBertConfig)
    return config
