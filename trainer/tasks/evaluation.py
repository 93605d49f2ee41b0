"""The seam between a run's evaluations and what is learned, and the evaluation of pre-training."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from bertdata.dataset.label_counts import Frequencies, LabelSurvey
from bertdata.dataset.reader import OpenedDataset
from trainer.data.batches import Batch
from trainer.data.opening import describe_left_out

MetricTotals = Mapping[str, tuple[float, float]]
"""Of each metric its sum and its weight, over any number of batches and workers."""


class TaskEvaluation(ABC):
    """A task's evaluation on one dataset."""

    note: str = ""
    """One line for the log, about the dataset."""

    metrics: tuple[str, ...] = ()
    """The names of host_sums, in order."""

    def host_sums(self, batch: Batch) -> Tensor:
        """More sums and weights, (2 x metrics,), of a batch in host memory."""
        return Tensor()

    def begin(self) -> None:  # noqa: B027 - most tasks keep nothing of a batch
        """Forget what ``add`` was given."""

    def add(self, batch: Batch, outputs: Tensor) -> None:  # noqa: B027
        """Keep the needed outputs of the model on a batch. Both arguments are in host memory."""

    def kept(self) -> Any:
        """JSON of what this worker keeps of its examples, in their order."""
        return None

    @abstractmethod
    def results(self, totals: MetricTotals, kept: Sequence[Any]) -> dict[str, float]:
        """The values of Columns.evaluation.

        totals: those of the task's metrics and these. kept: of each worker, by rank; the workers' examples
        follow one another.
        """

    def files(self) -> Mapping[str, str]:
        """Files about the last results, name and text, to be written into the output directory."""
        return {}

    @abstractmethod
    def describe(self, results: Mapping[str, float]) -> str:
        """The results in one line for a person."""


class PretrainingEvaluation(TaskEvaluation):
    """Accuracy and loss of masked words, and of next sentence where it is learned.

    Beside them stand those of two guesses that look at no text: the accuracy of always guessing the label
    that is most frequent in the survey, and the loss of giving each label its share there as probability.
    """

    def __init__(self, data: OpenedDataset, survey: Mapping[str, Any], source: str) -> None:
        """survey: the task's, of the training or evaluation set, as source says."""
        self._labels = LabelSurvey.of_json(dict(survey))
        self._word_losses = _loss_table(self._labels.words)
        self.metrics = ("guess_accuracy", "guess_loss")
        share = f"{self._labels.words.share:.1%} of them"
        guessed = f"the most frequent masked word of the {source} set is {self._labels.word}, {share}"
        if self._labels.pairs:
            self._pair_losses = _loss_table(self._labels.pairs)
            self.metrics = (*self.metrics, "guess_pair_accuracy", "guess_pair_loss")
            guessed += (
                f", and {self._labels.pair_word} the label of {self._labels.pairs.share:.1%} of its pairs"
            )
        left_out = describe_left_out(data, "training")
        self.note = f"evaluating on {data.examples} examples of {data.name}{left_out}; {guessed}"

    def host_sums(self, batch: Batch) -> Tensor:
        weights = batch.masked_lm_weights.float()
        sums = sums_of_guess(batch.masked_lm_ids, weights, self._labels.words, self._word_losses)
        if self._labels.pairs:
            labels = batch.next_sentence_labels.reshape(-1)
            there = (labels >= 0).float()  # those of padding rows are negative
            sums += sums_of_guess(labels.clamp(min=0), there, self._labels.pairs, self._pair_losses)
        return torch.stack(sums)

    def results(self, totals: MetricTotals, kept: Sequence[Any]) -> dict[str, float]:
        means = {name: total / max(weight, 1e-5) for name, (total, weight) in totals.items()}
        found = {
            "loss": means["mlm_loss"],
            "masked_lm_accuracy": means["mlm_accuracy"],
            "masked_lm_loss": means["mlm_loss"],
            "most_frequent_accuracy": means["guess_accuracy"],
            "guess_masked_lm_loss": means["guess_loss"],
        }
        if "nsp_loss" in means:
            found["loss"] += means["nsp_loss"]
            found["next_sentence_accuracy"] = means["nsp_accuracy"]
            found["next_sentence_loss"] = means["nsp_loss"]
            found["guess_next_sentence_accuracy"] = means["guess_pair_accuracy"]
            found["guess_next_sentence_loss"] = means["guess_pair_loss"]
        return found

    def describe(self, results: Mapping[str, float]) -> str:
        of_words = (
            "masked_lm_accuracy {masked_lm_accuracy:.5f} (always {word}: {most_frequent_accuracy:.5f}), "
            "masked_lm_loss {masked_lm_loss:.4f} (by frequency: {guess_masked_lm_loss:.4f})"
        ).format(word=self._labels.word, **results)
        if "next_sentence_accuracy" not in results:
            return of_words
        return (
            "{of_words}, next_sentence_accuracy {next_sentence_accuracy:.5f} "
            "(always {pair}: {guess_next_sentence_accuracy:.5f})"
        ).format(of_words=of_words, pair=self._labels.pair_word, **results)


def _loss_table(labels: Frequencies) -> Tensor:
    """The loss of each label when it is guessed by its share."""
    return torch.from_numpy(labels.losses()).float()


def sums_of_guess(ids: Tensor, weights: Tensor, labels: Frequencies, losses: Tensor) -> list[Tensor]:
    """Sum and weight of the most frequent label's accuracy, then of the loss of guessing by shares."""
    right = weights[ids == labels.most_frequent].sum()
    known = losses[ids.long().clamp(max=len(losses) - 1)]
    return [right, weights.sum(), (known * weights).sum(), weights.sum()]
