"""Models with heads for fine-tuning, which have the structure of transformers' models."""

from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trainer.config.model import ModelConfig
from trainer.config.modernbert import ModernBertConfig
from trainer.config.roberta import RobertaConfig
from trainer.data.batches import Batch, FlatAttention, FlatBatch
from trainer.model.bert import attend_with_pytorch
from trainer.model.headed import HeadedBert
from trainer.model.layers import ACTIVATIONS, LayerOutput, NormedDense

if TYPE_CHECKING:
    from trainer.data.row_batches import RowBatch


class BertForSequenceClassification(HeadedBert):
    """BERT with a head that gives each sequence a logit per label, or a score.

    For RoBERTa, transformers counts the dense layer before the classifier (BERT's pooler) as part of the
    head, and adds a dropout before this layer.
    """

    def __init__(
        self, config: ModelConfig, labels: int, attention: FlatAttention = attend_with_pytorch
    ) -> None:
        """Build the model with random weights.

        labels: number of labels, or 1 for a score.
        """
        super().__init__(config, attention=attention)
        given = config.classifier_dropout
        self.dropout = config.hidden_dropout_prob if given is None else given
        self.first_dropout = self.dropout if isinstance(config, RobertaConfig) else 0.0
        self.classifier = nn.Linear(config.hidden_size, labels)
        self.draw_weights()

    def forward(self, batch: Batch, carried: LayerOutput | None = None) -> Tensor:
        """Return the logits, with shape (sequences, labels).

        carried: output of the previous pipeline stage. None if the model starts at the embeddings.
        """
        first = self.bert.encode_seeded(batch, carried).normed.index_select(0, batch.starts())
        first = F.dropout(first, self.first_dropout, self.training)
        pooled = torch.tanh(self.bert.pooler.dense(first))
        logits: Tensor = self.classifier(F.dropout(pooled, self.dropout, self.training))
        return logits


class BertForQuestionAnswering(HeadedBert):
    """BERT with a head that gives each token two logits: that the answer starts there,
    and that it ends there.

    The logits do not depend on the pooler. The pooler exists only for checkpoints, and is not trained.
    """

    def __init__(self, config: ModelConfig, attention: FlatAttention = attend_with_pytorch) -> None:
        super().__init__(config, attention=attention)
        self.qa_outputs = nn.Linear(config.hidden_size, 2)
        self.draw_weights()
        self.bert.pooler.requires_grad_(requires_grad=False)

    def forward(self, batch: Batch, carried: LayerOutput | None = None) -> Tensor:
        """Return the logits, with shape (tokens, 2).

        The tokens are in the batch's order, one row after another.

        carried: output of the previous pipeline stage. None if the model starts at the embeddings.
        """
        rows, _ = self.bert(batch, carried)
        logits: Tensor = self.qa_outputs(rows)
        return logits


class PredictionHead(nn.Module):
    """The dense layer and norm that ModernBERT has before a classifier.

    The weights have the same names as in its masked-word head.
    """

    def __init__(self, config: ModernBertConfig) -> None:
        super().__init__()
        self.transform = NormedDense(config.hidden_size, config, bias=False)
        self.activation = ACTIVATIONS[config.hidden_act]
        self.dropout = config.classifier_dropout or 0.0

    def forward(self, rows: Tensor) -> Tensor:
        rows = self.transform.LayerNorm(self.activation(self.transform.dense(rows)))
        return F.dropout(rows, self.dropout, self.training)


class ModernBertForSequenceClassification(HeadedBert):
    """ModernBERT with a head that gives each sequence a logit per label, or a score.

    The head's input is the vector of the first token, or the mean over all tokens (setting
    classifier_pooling).
    """

    def __init__(
        self, config: ModernBertConfig, labels: int, attention: FlatAttention = attend_with_pytorch
    ) -> None:
        """Build the model with random weights.

        labels: number of labels, or 1 for a score.
        """
        super().__init__(config, attention=attention)
        self.takes_mean = config.classifier_pooling == "mean"
        self.cls = nn.ModuleDict({"predictions": PredictionHead(config)})
        self.classifier = nn.Linear(config.hidden_size, labels)
        self.draw_weights()

    def forward(self, batch: Batch, carried: LayerOutput | None = None) -> Tensor:
        """Return the logits, with shape (sequences, labels).

        carried: output of the previous pipeline stage. None if the model starts at the embeddings.
        """
        rows = self.bert.encode_seeded(batch, carried).normed
        if self.takes_mean:
            used, found = split_into_sequences(rows, batch)
            pooled = (found * used[:, :, None]).sum(1) / used.sum(1, keepdim=True).clamp(min=1)
        else:
            pooled = rows.index_select(0, batch.starts())
        logits: Tensor = self.classifier(self.cls["predictions"](pooled))
        return logits


class ModernBertForQuestionAnswering(HeadedBert):
    """ModernBERT with a head that gives each token two logits: that the answer starts there,
    and that it ends there.
    """

    def __init__(self, config: ModernBertConfig, attention: FlatAttention = attend_with_pytorch) -> None:
        super().__init__(config, attention=attention)
        self.cls = nn.ModuleDict({"predictions": PredictionHead(config)})
        self.qa_outputs = nn.Linear(config.hidden_size, 2)
        self.draw_weights()

    def forward(self, batch: Batch, carried: LayerOutput | None = None) -> Tensor:
        """Return the logits, with shape (tokens, 2).

        The tokens are in the batch's order, one row after another.

        carried: output of the previous pipeline stage. None if the model starts at the embeddings.
        """
        rows = self.bert.encode_seeded(batch, carried).normed
        logits: Tensor = self.qa_outputs(self.cls["predictions"](rows))
        return logits


def make_classifier(
    config: ModelConfig, labels: int, attention: FlatAttention = attend_with_pytorch
) -> HeadedBert:
    """Return a classification model of the configured architecture, with random weights.

    labels: number of labels, or 1 for a score.
    """
    if isinstance(config, ModernBertConfig):
        return ModernBertForSequenceClassification(config, labels, attention)
    return BertForSequenceClassification(config, labels, attention)


def make_answerer(config: ModelConfig, attention: FlatAttention = attend_with_pytorch) -> HeadedBert:
    """Return a question-answering model of the configured architecture, with random weights."""
    if isinstance(config, ModernBertConfig):
        return ModernBertForQuestionAnswering(config, attention)
    return BertForQuestionAnswering(config, attention)


def split_into_sequences(tokens: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """Cut the tokens of a batch into sequences. Return a mask and the values.

    The mask has shape (sequences, longest) and is True at the tokens of a sequence. The values have shape
    (sequences, longest, ...). Values after a sequence's end belong to other sequences.
    tokens: values of the tokens in the batch's order, with shape (tokens, ...).
    """
    if isinstance(batch, FlatBatch):
        lengths = batch.ends.diff()[: len(batch)]
    else:
        lengths = _count_row_tokens(cast("RowBatch", batch))
    places = torch.arange(batch.most_tokens(), dtype=lengths.dtype, device=lengths.device)
    rows = (batch.starts()[:, None] + places).clamp(max=len(tokens) - 1)
    return places < lengths[:, None], tokens[rows]


def _count_row_tokens(batch: "RowBatch") -> Tensor:
    """Return the number of tokens in each sequence of a batch of padded rows."""
    positions = batch.next_sentence_positions
    most = 1 if positions is None else positions.shape[1]
    # In a packed row, the attention mask numbers the sequences. For example, [1, 1, 1, 2, 2, 0] has sequences
    # of lengths 3 and 2, and padding.
    numbers = torch.arange(1, most + 1, device=batch.attention_mask.device)
    return (batch.attention_mask[:, None, :] == numbers[:, None]).sum(2).reshape(-1)
