"""BERT's encoder (Devlin et al. 2018). ``trainer.model.headed`` adds the heads (output layers).

The sequences of a batch come end to end in one row (a flat batch), so that nothing is computed for padding.
Devices that cannot use flat batches get padded rows.
"""

import math
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from bertdata.config.settings import require
from bertdata.examples.columns import Array
from trainer.config.model import ModelConfig, check_length
from trainer.data.batches import Batch, FlatAttention
from trainer.model.layers import Dense, Embeddings, EncoderOutput, Layer, LayerOutput

PASSES = 3.0
"""Operations of a forward and a backward pass together, as a multiple of the forward pass's operations."""

WORD_HEAD, PAIR_HEAD = "cls.predictions.", "cls.seq_relationship."
"""Beginnings of the names of weights in the heads for masked words and for next sentence."""


def attend_with_pytorch(*given: Any) -> Tensor:
    """Compute attention with PyTorch's standard operations, which work on every device.

    Arguments and result are explained at ``trainer.data.batches.FlatAttention``.
    """
    from trainer.model.padded_attention import padded_attention

    return padded_attention(*given)


class Bert(nn.Module):
    """The encoder, which turns token ids into a vector for each token and a vector for each sequence.

    If the model is divided among workers (``trainer.splitting.pieces``), an object has only some consecutive
    layers.
    attention: the device's attention function (``Device.attention_for``).
    pooler: makes the vector of each sequence. None if the heads do not need it.
    seeds: function that seeds dropout, set for each micro-batch (``trainer.update.strategy``). It is called
    with 0 before the embeddings, 1 before the first layer and so on, and after the last layer with the next
    number, for the heads. None: nothing is seeded.
    recomputes: True if layers keep only their input for the backward pass, and compute everything else again.
    """

    embeddings_class: type[nn.Module] = Embeddings

    def __init__(
        self, config: ModelConfig, pools: bool = True, attention: FlatAttention = attend_with_pytorch
    ) -> None:
        super().__init__()
        self.embeddings: Any = self.embeddings_class(config)
        layers = (self.new_layer(config, number) for number in range(config.num_hidden_layers))
        self.encoder: Any = nn.ModuleDict({"layer": nn.ModuleList(layers)})
        self.pooler: Any = Dense(config.hidden_size, config.hidden_size) if pools else None
        self.dropout = config.hidden_dropout_prob
        self.norm_first = config.megatron_residual_connection
        self.longest = config.max_position_embeddings
        self.attention = attention
        self.seeds: Callable[[int], None] | None = None
        self.recomputes = False

    @staticmethod
    def new_layer(config: ModelConfig, number: int) -> nn.Module:
        """Return a new layer.

        number: number of the layer, from 0.
        """
        return Layer(config)

    def forward(self, batch: Batch, carried: LayerOutput | None = None) -> tuple[Tensor, Tensor]:
        """Return vectors of the tokens, shape (tokens, hidden), and vectors of the sequences, shape (B,
        hidden).

        carried: output of the layer before this object's first layer, if the model is divided. An
        EncoderOutput is returned as it is, without running any layer. None: this object has the embeddings.
        """
        normed = self.encode_seeded(batch, carried).normed
        first = normed.index_select(0, batch.starts())
        return normed, torch.tanh(self.pooler.dense(first))

    def encode_seeded(self, batch: Batch, carried: LayerOutput | None = None) -> EncoderOutput:
        """Return the output of the last layer. Afterwards seed the dropout of the heads.

        carried: output of the layer before this object's first layer. An EncoderOutput is returned as it is,
        and nothing is seeded. None: this object has the embeddings.
        """
        if isinstance(carried, EncoderOutput):
            return carried
        output = EncoderOutput(*self.encode(batch, carried))
        if self.seeds is not None:
            self.seeds(len(self.encoder.layer) + 1)
        return output

    def encode(self, batch: Batch, carried: LayerOutput | None = None) -> LayerOutput:
        """Return the output of this object's last layer.

        carried: output of the layer before this object's first layer. None: this object has the embeddings.
        Raises SettingsError if a sequence is longer than the model's positions.
        """
        check_length(batch.most_tokens(), self.longest)
        if carried is None:
            if self.seeds is not None:
                self.seeds(0)
            carried = self.embed(batch)
        sequences = self.sequences(batch)
        run = (
            partial(checkpoint, self._run_layer, use_reentrant=False) if self.recomputes else self._run_layer
        )
        for number in range(len(self.encoder.layer)):
            carried = run(self.seeds, number, carried, sequences)
        return carried

    def _run_layer(
        self, seeds: Callable[[int], None] | None, number: int, carried: LayerOutput, sequences: Any
    ) -> LayerOutput:
        """Seed the dropout of a layer, then run the layer.

        seeds: function that seeds dropout, or None to seed nothing.
        number: number of the layer, from 0.
        """
        if seeds is not None:
            seeds(number + 1)
        return LayerOutput(*self.encoder.layer[number](*carried, sequences))

    def sequences(self, batch: Batch) -> Any:
        """Return the object through which the layers compute attention within each sequence of the batch."""
        return batch.sequences(self.attention)

    def embed(self, batch: Batch) -> LayerOutput:
        """Return the embeddings of the batch's tokens, which are the input of the first layer."""
        types = batch.token_type_ids.reshape(-1)
        # A model with a single segment type treats both texts of a pair as type 0.
        if self.embeddings.token_type_embeddings.num_embeddings == 1:
            types = torch.zeros_like(types)
        rows = self.embeddings(batch.input_ids.reshape(-1), types, batch.positions())
        if self.norm_first:
            rows = F.dropout(rows, self.dropout, self.training)
            return LayerOutput(rows, self.embeddings.LayerNorm(rows))
        rows = F.dropout(self.embeddings.LayerNorm(rows), self.dropout, self.training)
        return LayerOutput(rows, rows)

    def initialise(self, values: Tensor, path: str, config: ModelConfig) -> None:
        """Fill a weight matrix or an embedding with its random initial values.

        values: the tensor to fill.
        path: name of the weight's module in the whole model.
        """
        values.normal_(std=find_initial_deviation(path, config))

    @staticmethod
    def operations(lengths: Array, shape: ModelConfig) -> int:
        """Return the number of multiply-adds (a multiplication and an addition) in the layers' forward pass.

        lengths: number of tokens of each sequence.
        """
        width, inner = shape.hidden_size, shape.intermediate_size
        layer = int(lengths.sum()) * (4 * width * width + 2 * width * inner)
        return shape.num_hidden_layers * (layer + 2 * width * int(lengths @ lengths))


def find_initial_deviation(
    path: str, config: ModelConfig, deep: tuple[str, ...] = ("output.dense",)
) -> float:
    """Return the standard deviation of a weight's random initial values.

    path: name of the weight's module.
    deep: endings of the names of modules whose initial values are smaller the more layers the model has.
    """
    if config.deep_weight_init and path.endswith(deep):
        return config.initializer_range / math.sqrt(2 * config.num_hidden_layers)
    return config.initializer_range


def find_host_memory() -> int:
    """Return the size of this machine's memory in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def check_memory(parameters: int) -> None:
    """Raise SettingsError if this machine's memory cannot hold a model with this number of weights."""
    needed, there = 4 * parameters, find_host_memory()
    remedy = "choose a smaller hidden_size, intermediate_size or num_hidden_layers"
    require(
        needed <= there,
        f"a model of {parameters:,} parameters takes {needed / 2**30:,.1f} GiB, this machine has "
        f"{there / 2**30:,.1f} GiB; {remedy}",
    )
