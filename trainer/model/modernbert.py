"""ModernBERT's encoder (Warner et al. 2024): norms first, no biases, gated feed-forward, rotary positions.

Most layers see a window of each sequence only. As in a BERT whose norms come first, a layer has the norm
behind it: that of the next layer's attention, or the encoder's final norm. The first layer's attention reads
the embeddings as they are.
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
from trainer.model.bert import Bert, attend_anywhere, deviation
from trainer.model.layers import ACTIVATIONS, Carried, Dense, Norm, NormedDense

Rotation = tuple[Tensor, Tensor]
"""The cosine and the sine of each angle of each token, (T, 1, half of the head size) in fp32."""

_DEEP = ("output.dense", "transform.dense", "predictions.decoder")
"""Ends of the paths whose first values shrink with the depth."""

_CLASSIFIERS = ("classifier", "qa_outputs")


@dataclass(frozen=True, slots=True)
class RotarySequences:
    """The sequences of a batch, and the rotations of their tokens in global and in local layers."""

    sequences: Sequences
    of_global: Rotation
    of_local: Rotation

    @classmethod
    def of(cls, sequences: Sequences, positions: Tensor, config: ModernBertConfig) -> "RotarySequences":
        """positions: each token's in its sequence."""
        size, thetas = (
            config.hidden_size // config.num_attention_heads,
            (config.global_rope_theta, config.local_rope_theta),
        )
        return cls(sequences, *(find_rotation(positions, size, theta) for theta in thetas))


class RotaryAttention(nn.Module):
    """Attention with rotary positions, over whole sequences or within the reach of each token.

    Query, key and value are one weight, as in the original program, whose optimiser takes it as one.
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
    """Attention and its output projection."""

    def __init__(self, config: ModernBertConfig, number: int) -> None:
        super().__init__()
        self.self = RotaryAttention(config, number)
        self.output = NormedDense(config.hidden_size, config, bias=False)


class RotaryLayer(nn.Module):
    """One layer: attention and gated feed-forward part, each read by a norm."""

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
        """From this layer's residual and attention input to those of the next layer."""
        rows, normed = self.attention.output.add(self.attention.self(normed, context), rows)
        values, gates = self.intermediate.dense(normed).chunk(2, -1)
        gated = F.dropout(self.activation(values) * gates, self.dropout, self.training)
        return self.output.add(gated, rows)


class WordEmbeddings(nn.Module):
    """The words' embeddings, and their norm."""

    def __init__(self, config: ModernBertConfig) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(config.padded_vocab_size, config.hidden_size)
        self.LayerNorm = Norm(config)
        self.dropout = config.embedding_dropout

    def forward(self, input_ids: Tensor) -> Tensor:
        """(tokens, hidden) from (tokens,)."""
        rows = self.LayerNorm(self.word_embeddings(input_ids))
        return F.dropout(rows, self.dropout, self.training)


class ModernBert(Bert):
    """The encoder: from ids to a vector for each token. Tasks pool them as they need."""

    embeddings_class = WordEmbeddings

    def __init__(
        self, config: ModernBertConfig, pools: bool = False, attention: FlatAttention = attend_anywhere
    ) -> None:
        super().__init__(config, pools=False, attention=attention)
        self.rotary = config

    @staticmethod
    def new_layer(config: ModelConfig, number: int) -> nn.Module:
        return RotaryLayer(_own(config), number)

    def sequences(self, batch: Batch) -> RotarySequences:
        return RotarySequences.of(batch.sequences(self.attention), batch.positions(), self.rotary)

    def embed(self, batch: Batch) -> Carried:
        rows = self.embeddings(batch.input_ids.reshape(-1))
        return Carried(rows, rows)

    def draw(self, values: Tensor, path: str, config: ModelConfig) -> None:
        """A normal distribution whose ends are cut off."""
        std = deviation(path, config, _DEEP)
        if path in _CLASSIFIERS:
            std = config.hidden_size**-0.5
        end = _own(config).initializer_cutoff_factor * std
        nn.init.trunc_normal_(values, std=std, a=-end, b=end)

    @staticmethod
    def operations(lengths: Array, shape: ModelConfig) -> int:
        config = _own(shape)
        width, inner, count = config.hidden_size, config.intermediate_size, config.num_hidden_layers
        layer = int(lengths.sum()) * (4 * width * width + 3 * width * inner)
        whole = sum(map(config.is_global, range(count)))
        pairs = whole * int(lengths @ lengths) + (count - whole) * seen_pairs(lengths, config.reach)
        return count * layer + 2 * width * pairs


class Rotate(torch.autograd.Function):
    """Query, key and value of joined ones, (T, 3, heads, head size), the first two turned.

    Value j and value j + half of the head size are turned by the angle j of their token, computed in fp32.
    The backward pass turns back, straight into the gradient of the joined ones.
    """

    @staticmethod
    def forward(ctx: Any, joined: Tensor, cosine: Tensor, sine: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        ctx.save_for_backward(cosine, sine)
        query, key, value = joined.unbind(1)
        return turn(query, cosine, sine), turn(key, cosine, sine), value.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        cosine, sine = ctx.saved_tensors
        query, key, value = gradients
        turned = turn(query, cosine, -sine), turn(key, cosine, -sine), value
        return torch.stack(turned, 1), None, None


def turn(heads: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Vectors turned by the angle of each token, (T, heads, head size) like the heads.

    Nothing is changed in place and each half is cast on its own: a compiler then reads and writes each once.
    """
    first, second = heads.chunk(2, -1)
    one = torch.addcmul(first * cosine, second, sine, value=-1)
    other = torch.addcmul(second * cosine, first, sine)
    return torch.cat((one.to(heads.dtype), other.to(heads.dtype)), -1)


@torch.library.custom_op("bertdata::rotation", mutates_args=())
def find_rotation(positions: Tensor, size: int, theta: float) -> tuple[Tensor, Tensor]:
    """The rotation of tokens at these positions: angle j is position theta^(-2j / size) (Su et al. 2021).

    An operation of its own: a compiler would find cosine and sine anew in each layer, for each value.
    """
    steps = torch.arange(0, size, 2, dtype=torch.float32, device=positions.device)
    angles = positions.float()[:, None] * (1.0 / theta ** (steps / size))
    return angles.cos()[:, None], angles.sin()[:, None]


@find_rotation.register_fake
def _(positions: Tensor, size: int, theta: float) -> tuple[Tensor, Tensor]:
    made = positions.new_empty((len(positions), 1, size // 2), dtype=torch.float32)
    return made, torch.empty_like(made)


def seen_pairs(lengths: Array, reach: int) -> int:
    """Pairs of tokens of one sequence that are at most so far apart, over all sequences."""
    seen = lengths.clip(max=reach + 1)
    short = seen * seen  # all pairs of a sequence, or of the first tokens of a longer one
    return int((short + (lengths - seen) * (2 * reach + 1)).sum())


def _own(config: ModelConfig) -> ModernBertConfig:
    assert isinstance(config, ModernBertConfig)
    return config
