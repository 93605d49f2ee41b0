"""A user-defined task that learns the labels of ``span_objective``: the number of tokens in each span."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.examples.objectives import find_objective
from tests.support.span_objective import NAME, SpanBatch
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.data.batches import Batch, FlatAttention
from trainer.data.opening import open_configured
from trainer.model.bert import attend_with_pytorch
from trainer.model.headed import HeadedBert
from trainer.model.layers import LayerOutput
from trainer.tasks.evaluation import MetricTotals, TaskEvaluation
from trainer.tasks.task import Columns, Outcome, RowLosses, Task

if TYPE_CHECKING:
    from typing_extensions import Self

LABELS = 5
GENERATED = 64
"""Examples that the task generates."""


class BertForSpans(HeadedBert):
    """BERT's encoder with a head on the vectors of each span's first and last token."""

    def __init__(self, config: ModelConfig, attention: FlatAttention = attend_with_pytorch) -> None:
        super().__init__(config, pools=False, attention=attention)
        self.spans = nn.Linear(2 * config.hidden_size, LABELS)
        self.draw_weights()

    def forward(self, batch: Batch, carried: LayerOutput | None = None) -> Tensor:
        """Return (B, most, LABELS) logits for all span slots, used or not."""
        rows = self.bert.encode(batch, carried).normed
        starts = batch.starts()[:, None]
        ends = [rows[starts + batch.targets[name]] for name in ("first_tokens", "last_tokens")]
        logits: Tensor = self.spans(torch.cat(ends, -1))
        return logits


class SpanTask(Task):
    """A task whose loss is the mean cross entropy over the spans. Its metric counts the word starts."""

    name = "tests.support.span_task:SpanTask"
    metrics = ("span_loss", "span_accuracy", "word_starts")
    architecture = "BertForSpans"
    head = "spans."
    columns = Columns(
        training={"span_loss": "span_loss", "span_acc": "span_accuracy"},
        evaluation=("loss", "span_accuracy", "word_starts"),
        shown="span_accuracy",
        target="span_accuracy",
    )

    @classmethod
    def configured(cls, config: Config, row_losses: RowLosses | None) -> "Self":
        return cls()

    def open(
        self, config: Config, paths: str, model_vocabulary_size: int | None = None, *, held_out: bool = False
    ) -> OpenedDataset:
        return open_configured(config, paths, model_vocabulary_size, held_out=held_out, task=self.name)

    @classmethod
    def generated(cls, config: Config) -> "GeneratedSpans":
        layout = find_objective(NAME).settings_type(max_seq_length=16).layout
        shards = (Shard(name="spans", path="", examples=GENERATED),)
        return GeneratedSpans(name="generated spans", layout=layout, shards=shards, vocabulary_size=90)

    @classmethod
    def exported(cls, weights: Mapping[str, Any], form: str) -> Mapping[str, Any]:
        """Return the weights with the head renamed. transformers has no class for this head."""
        if form != "huggingface":
            return weights
        return {name.replace("spans.", "span_head."): one for name, one in weights.items()}

    def new_model(self, shape: ModelConfig, attention: FlatAttention = attend_with_pytorch) -> BertForSpans:
        return BertForSpans(shape, attention)

    def outcome(self, model: Any, batch: Batch) -> Outcome:
        logits, labels = model(batch), batch.targets["span_labels"].long()
        used = torch.arange(labels.shape[1]) < batch.targets["span_ends"][:, None]
        losses = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none") * used.flatten()
        count = used.sum().float()
        right = ((logits.argmax(-1) == labels) & used).sum().float()
        starts, tokens = batch.targets["word_starts"].sum().float(), batch.targets["word_starts"].numel()
        sums = [losses.sum().detach(), count, right, count, starts, torch.tensor(float(tokens))]
        return Outcome(losses.sum() / count.clamp(min=1e-5), torch.stack(sums))

    def survey(self, data: OpenedDataset) -> None:
        """Do nothing, since evaluation needs no statistics of the data."""

    def evaluation(
        self, data: OpenedDataset, survey: Any, training: OpenedDataset | None
    ) -> "SpanEvaluation":
        return SpanEvaluation()


@dataclass(frozen=True, kw_only=True, slots=True)
class GeneratedSpans(OpenedDataset):
    """Generated full-length examples with random ids, each with a span of one token and a span of two."""

    def batches(self, shard: Shard) -> Iterator[SpanBatch]:
        rows, length = shard.examples, self.layout.max_seq_length
        drawn = np.random.default_rng(7)
        yield SpanBatch(
            ids=drawn.integers(0, self.vocabulary_size, rows * length).astype(np.uint16),
            ends=np.arange(1, rows + 1, dtype=np.uint32) * length,
            word_starts=np.ones(rows * length, np.uint8),
            first_tokens=np.tile(np.array([1, 2], np.uint32), rows),
            last_tokens=np.tile(np.array([1, 3], np.uint32), rows),
            span_labels=np.tile(np.array([1, 2], np.uint16), rows),
            span_ends=np.arange(1, rows + 1, dtype=np.uint32) * 2,
        )


class SpanEvaluation(TaskEvaluation):
    """The loss and accuracy over spans, and the number of word starts."""

    def results(self, totals: MetricTotals, kept: Sequence[Any]) -> dict[str, float]:
        loss, accuracy = (totals[name][0] / totals[name][1] for name in ("span_loss", "span_accuracy"))
        return {"loss": loss, "span_accuracy": accuracy, "word_starts": totals["word_starts"][0]}

    def describe(self, results: Mapping[str, float]) -> str:
        return f"span_accuracy {results['span_accuracy']:.5f}"
