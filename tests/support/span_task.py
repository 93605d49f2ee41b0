"""A task that learns the spans of tests.support.span_objective: the number of their tokens."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertdata.dataset.reader import OpenedDataset
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.data.batches import Batch
from trainer.data.opening import open_configured
from trainer.model.bert import HeadedBert
from trainer.model.evaluation import MetricTotals, TaskEvaluation
from trainer.model.layers import Carried
from trainer.model.task import Columns, Model, Outcome, RowLosses, Task

LABELS = 5


class BertForSpans(HeadedBert):
    """The encoder with a head on the vectors of a span's first and last token."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, pools=False)
        self.spans = nn.Linear(2 * config.hidden_size, LABELS)
        self.draw_weights()

    def forward(self, batch: Batch, carried: Carried | None = None) -> Tensor:
        """(B, most, LABELS) logits of all slots of spans, used or not."""
        rows = self.bert.encode(batch, carried).normed
        starts = batch.starts()[:, None]
        ends = [rows[starts + batch.targets[name]] for name in ("first_tokens", "last_tokens")]
        logits: Tensor = self.spans(torch.cat(ends, -1))
        return logits


class SpanTask(Task):
    """Mean cross entropy over the spans. A metric counts the starts of words, a bit a token."""

    name = "tests.support.span_task:SpanTask"
    metrics = ("span_loss", "span_accuracy", "word_starts")
    head = "spans."
    columns = Columns(
        training={"span_loss": "span_loss", "span_acc": "span_accuracy"},
        evaluation=("loss", "span_accuracy", "word_starts"),
        shown="span_accuracy",
        target="span_accuracy",
        curves={"spans": ("span", "span")},
    )

    @classmethod
    def configured(cls, config: Config, row_losses: RowLosses | None) -> Self:
        return cls()

    def open(
        self,
        config: Config,
        paths: str | None,
        model_vocabulary_size: int | None = None,
        *,
        held_out: bool = False,
    ) -> OpenedDataset:
        return open_configured(config, paths, model_vocabulary_size, held_out=held_out, task=self.name)

    def new_model(self, shape: ModelConfig) -> BertForSpans:
        return BertForSpans(shape)

    def outcome(self, model: Model, batch: Batch) -> Outcome:
        logits, labels = model(batch), batch.targets["span_labels"].long()
        used = torch.arange(labels.shape[1]) < batch.targets["span_ends"][:, None]
        losses = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none") * used.flatten()
        count = used.sum().float()
        right = ((logits.argmax(-1) == labels) & used).sum().float()
        starts, tokens = batch.targets["word_starts"].sum().float(), batch.targets["word_starts"].numel()
        sums = [losses.sum().detach(), count, right, count, starts, torch.tensor(float(tokens))]
        return Outcome(losses.sum() / count.clamp(min=1e-5), torch.stack(sums))

    def survey(self, data: OpenedDataset) -> None:
        """Nothing."""

    def evaluation(
        self, data: OpenedDataset, survey: Any, training: OpenedDataset | None
    ) -> "SpanEvaluation":
        return SpanEvaluation()


class SpanEvaluation(TaskEvaluation):
    """Loss and accuracy of spans, and the number of words' starts."""

    def results(self, totals: MetricTotals, kept: Sequence[Any]) -> dict[str, float]:
        loss, accuracy = (totals[name][0] / totals[name][1] for name in ("span_loss", "span_accuracy"))
        return {"loss": loss, "span_accuracy": accuracy, "word_starts": totals["word_starts"][0]}

    def describe(self, results: Mapping[str, float]) -> str:
        return f"span_accuracy {results['span_accuracy']:.5f}"
