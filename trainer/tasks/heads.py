"""Models with the heads of fine-tuning, as transformers has them for each kind of model."""

from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trainer.config.model import ModelConfig
from trainer.config.modernbert import ModernBertConfig
from trainer.config.roberta import RobertaConfig
from trainer.data.batches import Batch, FlatAttention, FlatBatch
from trainer.model.bert import attend_anywhere
from trainer.model.headed import HeadedBert
from trainer.model.layers import ACTIVATIONS, Carried, NormedDense

if TYPE_CHECKING:
    from trainer.data.row_batches import RowBatch


class BertForSequenceClassification(HeadedBert):
    """Logits of the labels of a sequence, or its score.

    RoBERTa has one more dropout, before the dense layer that transformers counts to this head.
    """

    def __init__(self, config: ModelConfig, labels: int, attention: FlatAttention = attend_anywhere) -> None:
        """labels: their number, 1 for a score."""
        super().__init__(config, attention=attention)
        given = config.classifier_dropout
        self.dropout = config.hidden_dropout_prob if given is None else given
        self.first_dropout = self.dropout if isinstance(config, RobertaConfig) else 0.0
        self.classifier = nn.Linear(config.hidden_size, labels)
        self.draw_weights()

    def forward(self, batch: Batch, carried: Carried | None = None) -> Tensor:
        """(B, labels) logits."""
        first = self.bert.encode_seeded(batch, carried).index_select(0, batch.starts())
        first = F.dropout(first, self.first_dropout, self.training)
        pooled = torch.tanh(self.bert.pooler.dense(first))
        logits: Tensor = self.classifier(F.dropout(pooled, self.dropout, self.training))
        return logits


class BertForQuestionAnswering(HeadedBert):
    """Two logits for each token: that the answer starts there, and that it ends there.

    The pooler, which takes no part, is kept as it is.
    """

    def __init__(self, config: ModelConfig, attention: FlatAttention = attend_anywhere) -> None:
        super().__init__(config, attention=attention)
        self.qa_outputs = nn.Linear(config.hidden_size, 2)
        self.draw_weights()
        self.bert.pooler.requires_grad_(requires_grad=False)

    def forward(self, batch: Batch, carried: Carried | None = None) -> Tensor:
        """(tokens, 2) logits. The tokens are in the batch's order, rows one after another."""
        rows, _ = self.bert(batch, carried)
        logits: Tensor = self.qa_outputs(rows)
        return logits


class PredictionHead(nn.Module):
    """ModernBERT's dense layer and norm before any classifier: those of the masked words, and their names."""

    def __init__(self, config: ModernBertConfig) -> None:
        super().__init__()
        self.transform = NormedDense(config.hidden_size, config, bias=False)
        self.activation = ACTIVATIONS[config.hidden_act]
        self.dropout = config.classifier_dropout or 0.0

    def forward(self, rows: Tensor) -> Tensor:
        rows = self.transform.LayerNorm(self.activation(self.transform.dense(rows)))
        return F.dropout(rows, self.dropout, self.training)


class ModernBertForSequenceClassification(HeadedBert):
    """Logits of the labels of a sequence, or its score, from its first token or the mean of all."""

    def __init__(
        self, config: ModernBertConfig, labels: int, attention: FlatAttention = attend_anywhere
    ) -> None:
        """labels: their number, 1 for a score."""
        super().__init__(config, attention=attention)
        self.takes_mean = config.classifier_pooling == "mean"
        self.cls = nn.ModuleDict({"predictions": PredictionHead(config)})
        self.classifier = nn.Linear(config.hidden_size, labels)
        self.draw_weights()

    def forward(self, batch: Batch, carried: Carried | None = None) -> Tensor:
        """(B, labels) logits."""
        rows = self.bert.encode_seeded(batch, carried)
        if self.takes_mean:
            used, found = sequence_rows(rows, batch)
            pooled = (found * used[:, :, None]).sum(1) / used.sum(1, keepdim=True).clamp(min=1)
        else:
            pooled = rows.index_select(0, batch.starts())
        logits: Tensor = self.classifier(self.cls["predictions"](pooled))
        return logits


class ModernBertForQuestionAnswering(HeadedBert):
    """Two logits for each token: that the answer starts there, and that it ends there."""

    def __init__(self, config: ModernBertConfig, attention: FlatAttention = attend_anywhere) -> None:
        super().__init__(config, attention=attention)
        self.cls = nn.ModuleDict({"predictions": PredictionHead(config)})
        self.qa_outputs = nn.Linear(config.hidden_size, 2)
        self.draw_weights()

    def forward(self, batch: Batch, carried: Carried | None = None) -> Tensor:
        """(tokens, 2) logits. The tokens are in the batch's order, rows one after another."""
        rows = self.bert.encode_seeded(batch, carried)
        logits: Tensor = self.qa_outputs(self.cls["predictions"](rows))
        return logits


def classifier_of(config: ModelConfig, labels: int, attention: FlatAttention = attend_anywhere) -> HeadedBert:
    """The model of its kind for so many labels, or with 1 for a score."""
    if isinstance(config, ModernBertConfig):
        return ModernBertForSequenceClassification(config, labels, attention)
    return BertForSequenceClassification(config, labels, attention)


def answerer_of(config: ModelConfig, attention: FlatAttention = attend_anywhere) -> HeadedBert:
    """The model of its kind that finds answers."""
    if isinstance(config, ModernBertConfig):
        return ModernBertForQuestionAnswering(config, attention)
    return BertForQuestionAnswering(config, attention)


def sequence_rows(tokens: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """(sequences, longest) true at the tokens of each sequence, and (sequences, longest, ...) its vectors.

    tokens: (tokens, ...) in the batch's order. Behind a sequence's end stand vectors of others.
    """
    if isinstance(batch, FlatBatch):
        lengths = batch.ends.diff()[: len(batch)]
    else:
        lengths = _row_lengths(cast("RowBatch", batch))
    places = torch.arange(batch.most_tokens(), dtype=lengths.dtype, device=lengths.device)
    rows = (batch.starts()[:, None] + places).clamp(max=len(tokens) - 1)
    return places < lengths[:, None], tokens[rows]


def _row_lengths(batch: "RowBatch") -> Tensor:
    """The tokens of each sequence of padded rows, whose attention mask numbers those of a row from 1."""
    positions = batch.next_sentence_positions
    most = 1 if positions is None else positions.shape[1]
    numbers = torch.arange(1, most + 1, device=batch.attention_mask.device)
    return (batch.attention_mask[:, None, :] == numbers[:, None]).sum(2).reshape(-1)
