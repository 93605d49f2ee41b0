"""BERT with its two heads: masked words and next sentence (Devlin et al. 2018).

Sequences come flat, one after another, so that every product is one of real tokens; or in padded rows, for
devices that need them. The masked-word head is computed for masked slots only.
"""

import math
import os

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertdata.errors import SettingsError
from trainer.config.model import ModelConfig
from trainer.data.batches import Batch, FlatBatch
from trainer.model.attention import FlatAttention, padded_attention, sequences_of
from trainer.model.heads import Heads, Logits
from trainer.model.layers import Dense, Embeddings, Encoder
from trainer.model.token_rows import first_rows, masked_rows, positions_of


class Bert(nn.Module):
    """The encoder: from ids to a vector for each token and one for each sequence."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.embeddings = Embeddings(config)
        self.encoder = Encoder(config)
        self.pooler = Dense(config.hidden_size, config.hidden_size)
        self.dropout = config.hidden_dropout_prob
        self.norm_first = config.megatron_residual_connection
        self.longest = config.max_position_embeddings
        self.attention: FlatAttention = padded_attention

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """(tokens, hidden) vectors of the tokens, (B, hidden) vectors of the sequences."""
        length = batch.longest if isinstance(batch, FlatBatch) else batch.input_ids.shape[1]
        if length > self.longest:
            raise SettingsError(
                f"sequences of {length} ids, at most max_position_embeddings ({self.longest})"
            )
        types = batch.token_type_ids.reshape(-1)
        rows = self.embeddings(batch.input_ids.reshape(-1), types, positions_of(batch))
        if self.norm_first:
            rows = F.dropout(rows, self.dropout, self.training)
            normed = self.embeddings.LayerNorm(rows)
        else:
            rows = normed = F.dropout(self.embeddings.LayerNorm(rows), self.dropout, self.training)
        sequences = sequences_of(batch, self.attention)
        for layer in self.encoder.layer:
            rows, normed = layer(rows, normed, sequences)
        first = normed.index_select(0, first_rows(batch))
        return normed, torch.tanh(self.pooler.dense(first))


def new_model(config: ModelConfig) -> "BertForPreTraining":
    """The model with random weights in this machine's memory; SettingsError where it cannot hold them."""
    needed = 4 * config.parameters
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > there:
        raise SettingsError(
            f"a model of {config.parameters:,} parameters takes {needed / 2**30:,.1f} GiB, this machine has "
            f"{there / 2**30:,.1f} GiB; choose a smaller hidden_size, intermediate_size or num_hidden_layers"
        )
    return BertForPreTraining(config)


class HeadedBert(nn.Module):
    """An encoder, named ``bert``, to which a task adds its heads."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.bert = Bert(config)

    def draw_weights(self) -> None:
        """Draw all weights from torch's generator, in the order of the modules."""
        config = self.config
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                std = config.initializer_range
                if config.deep_weight_init and name.endswith("output.dense"):
                    std /= math.sqrt(2 * config.num_hidden_layers)
                nn.init.normal_(module.weight, std=std)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)
        nn.init.zeros_(self.bert.embeddings.word_embeddings.weight.detach()[config.vocab_size :])


class BertForPreTraining(HeadedBert):
    """The whole model, with random weights."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.cls = Heads(config)
        self.draw_weights()

    def forward(self, batch: Batch) -> Logits:
        """Logits of all masked slots, used or not, and of all next-sentence pairs."""
        rows, pooled = self.bert(batch)
        masked = rows.index_select(0, masked_rows(batch))
        words = self.cls.predictions(masked, self.bert.embeddings.word_embeddings.weight)
        ids, weights = batch.masked_lm_ids.reshape(-1), batch.masked_lm_weights.reshape(-1)
        return Logits(words, self.cls.seq_relationship(pooled), ids.long(), weights)
