"""Pre-training of BERT: masked words and next sentence (Devlin et al. 2018)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from bertdata.dataset.reader import OpenedDataset
from bertdata.examples.bert.batch import BertBatch
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.data.batches import Batch
from trainer.data.opening import left_out_words, open_configured
from trainer.model.bert import BertForPreTraining
from trainer.model.heads import Logits
from trainer.model.losses import cross_entropy
from trainer.model.task import Columns, Model, Outcome, RowLosses, Task, TaskEvaluation, Totals

_SURVEYED_EXAMPLES = 20_000


class Pretraining(Task):
    """Weighted mean of the masked-word losses, plus mean of the next-sentence losses.

    row_losses: a device's implementation in place of cross_entropy.
    """

    name = "pretraining"
    metrics = ("mlm_loss", "mlm_accuracy", "nsp_loss", "nsp_accuracy")
    columns = Columns(
        training={
            "mlm_loss": "mlm_loss",
            "nsp_loss": "nsp_loss",
            "mlm_acc": "mlm_accuracy",
            "nsp_acc": "nsp_accuracy",
        },
        evaluation=(
            "loss",
            "masked_lm_accuracy",
            "masked_lm_loss",
            "next_sentence_accuracy",
            "next_sentence_loss",
            "most_frequent_accuracy",
        ),
        shown="mlm_accuracy",
        target="masked_lm_accuracy",
        curves={"masked words": ("mlm", "masked_lm"), "next sentence": ("nsp", "next_sentence")},
    )

    def __init__(self, row_losses: RowLosses | None = None) -> None:
        self._row_losses = row_losses or cross_entropy

    def open(
        self,
        config: Config,
        paths: str | None,
        model_vocabulary_size: int | None = None,
        *,
        held_out: bool = False,
    ) -> OpenedDataset:
        return open_configured(config, paths, model_vocabulary_size, held_out=held_out)

    def new_model(self, shape: ModelConfig) -> BertForPreTraining:
        return BertForPreTraining(shape)

    def outcome(self, model: Model, batch: Batch) -> Outcome:
        return pretraining_loss(model(batch), batch, self._row_losses)

    def survey(self, data: OpenedDataset) -> int:
        """The most frequent label of the dataset's first 20,000 examples; the smallest id among equals."""
        counts = Counter[int]()
        seen = 0
        for batch in (batch for shard in data.shards for batch in data.batches(shard)):
            assert isinstance(batch, BertBatch)
            counts.update(batch.labels.tolist())
            seen += len(batch)
            if seen >= _SURVEYED_EXAMPLES:
                break
        return min(counts, key=lambda token: (-counts[token], token), default=0)

    def evaluation(self, data: OpenedDataset, survey: Any, training: OpenedDataset | None) -> TaskEvaluation:
        return PretrainingEvaluation(data, survey, "training" if training else "evaluation")


class PretrainingEvaluation(TaskEvaluation):
    """Accuracy and loss of both heads, beside the accuracy of always guessing one token."""

    metrics = ("guess_accuracy",)

    def __init__(self, data: OpenedDataset, guess: int, source: str) -> None:
        self._guess = guess
        self.note = (
            f"evaluating on {data.examples} examples of {data.name}{left_out_words(data, 'training')}; "
            f"the most frequent label of the {source} set is token {guess}"
        )

    def host_sums(self, batch: Batch) -> Tensor:
        weights = batch.masked_lm_weights
        return torch.stack([weights[batch.masked_lm_ids == self._guess].sum(), weights.sum()])

    def results(self, totals: Totals, kept: Sequence[Any]) -> dict[str, float]:
        means = {name: total / max(weight, 1e-5) for name, (total, weight) in totals.items()}
        return {
            "loss": means["mlm_loss"] + means["nsp_loss"],
            "masked_lm_accuracy": means["mlm_accuracy"],
            "masked_lm_loss": means["mlm_loss"],
            "next_sentence_accuracy": means["nsp_accuracy"],
            "next_sentence_loss": means["nsp_loss"],
            "most_frequent_accuracy": means["guess_accuracy"],
        }

    def describe(self, results: Mapping[str, float]) -> str:
        return (
            "masked_lm_accuracy {masked_lm_accuracy:.5f} "
            "(always guessing the most frequent token: {most_frequent_accuracy:.5f}), "
            "masked_lm_loss {masked_lm_loss:.4f}, next_sentence_accuracy {next_sentence_accuracy:.5f}"
        ).format(**results)


def pretraining_loss(logits: Logits, batch: Batch, row_losses: RowLosses = cross_entropy) -> Outcome:
    """The loss and the sums of Pretraining.metrics.

    A sequence with a negative label (a padding row) is left out of both. Without any masked word, or any
    sequence, that part of the loss is 0.
    """
    labels = batch.next_sentence_labels.reshape(-1).long()
    words = row_losses(logits.masked_lm, logits.masked_lm_ids)
    pairs = row_losses(logits.next_sentence, labels.clamp(min=0))
    words_loss, words_sums = _mean_and_sums(*words, logits.masked_lm_weights)
    pairs_loss, pairs_sums = _mean_and_sums(*pairs, labels >= 0)
    return Outcome(words_loss + pairs_loss, torch.stack([*words_sums, *pairs_sums]))


def _mean_and_sums(losses: Tensor, right: Tensor, weights: Tensor) -> tuple[Tensor, list[Tensor]]:
    """The weighted mean loss, with gradients; sum and weight of the losses, then of the right guesses."""
    weights = weights.float()
    loss_sum = (losses * weights).sum()
    weight = weights.sum()
    mean = loss_sum / weight.clamp(min=1e-5)
    return mean, [loss_sum.detach(), weight, (right * weights).sum(), weight]
