"""BERT with the heads of fine-tuning, under Hugging Face's names."""

from torch import Tensor, nn
from torch.nn import functional as F

from trainer.config.model import ModelConfig
from trainer.data.batches import Batch
from trainer.model.bert import HeadedBert
from trainer.model.layers import Carried


class BertForQuestionAnswering(HeadedBert):
    """Two logits for each token: that the answer starts there, and that it ends there.

    The pooler, which takes no part, is kept as it is.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.qa_outputs = nn.Linear(config.hidden_size, 2)
        self.draw_weights()
        self.bert.pooler.requires_grad_(requires_grad=False)

    def forward(self, batch: Batch, carried: Carried | None = None) -> Tensor:
        """(tokens, 2) logits; the tokens as in the batch, those of rows one row after the other."""
        rows, _ = self.bert(batch, carried)
        logits: Tensor = self.qa_outputs(rows)
        return logits


class BertForSequenceClassification(HeadedBert):
    """Logits of the labels of a sequence, or its score."""

    def __init__(self, config: ModelConfig, labels: int) -> None:
        """labels: how many; 1 for a score."""
        super().__init__(config)
        self.dropout = config.hidden_dropout_prob
        self.classifier = nn.Linear(config.hidden_size, labels)
        self.draw_weights()

    def forward(self, batch: Batch, carried: Carried | None = None) -> Tensor:
        """(B, labels) logits."""
        _, pooled = self.bert(batch, carried)
        logits: Tensor = self.classifier(F.dropout(pooled, self.dropout, self.training))
        return logits
