"""The interface of a task's evaluation, and the evaluation for pre-training tasks."""

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
"""For each metric its sum and its weight. They may cover any number of batches and workers."""


class TaskEvaluation(ABC):
    """A task's evaluation on one dataset.

    The methods are called in the order ``begin``, ``add``, ``kept``, ``results``.
    """

    note: str = ""
    """A line about the dataset for the log. "" if there is nothing to say."""

    metrics: tuple[str, ...] = ()
    """Names of the metrics that ``host_sums`` computes, in order."""

    def host_sums(self, batch: Batch) -> Tensor:
        """Return the sum and weight of each metric in ``metrics`` for a batch, as a tensor of
        shape (2 x metrics,).

        These metrics depend only on the batch, not on the model. The batch is in host memory.
        """
        return Tensor()

    def begin(self) -> None:  # noqa: B027 - optional, most tasks store nothing
        """Start an evaluation, and discard everything that ``add`` has stored."""

    def add(self, batch: Batch, outputs: Tensor) -> None:  # noqa: B027
        """Store the part of the model's outputs for a batch that the results need.

        Both arguments are in host memory.
        """

    def kept(self) -> Any:
        """Return the values that ``add`` has stored on this worker, in the order of the examples.

        The values are sent to other workers as JSON.
        """
        return None

    @abstractmethod
    def results(self, totals: MetricTotals, kept: Sequence[Any]) -> dict[str, float]:
        """Return the results by name.

        The names are those in ``Columns.evaluation``, the columns of evaluation.csv.

        totals: sums and weights of the task's metrics. They include the metrics that the method ``host_sums``
            computes on the host.
        kept: for each worker, by rank, what its call of the method ``kept`` returned, such as predictions.
            Joined, these lists are in the order of the examples.
        """

    def files(self) -> Mapping[str, str]:
        """Return files about the latest results, as a mapping from name to text, to write to
        the output directory.
        """
        return {}

    @abstractmethod
    def describe(self, results: Mapping[str, float]) -> str:
        """Return the results as one line of text for the log."""


class PretrainingEvaluation(TaskEvaluation):
    """Evaluation of pre-training: accuracy and loss of masked words, and of next sentence if the task has it.

    Two baselines that do not read the text are reported too. The baseline of accuracy always guesses the
    most frequent label. The baseline of loss predicts each label with a probability that is the label's
    share of all labels.
    """

    def __init__(self, data: OpenedDataset, survey: Mapping[str, Any], source: str) -> None:
        """Prepare the baselines, from the labels of a dataset.

        data: dataset to evaluate on.
        survey: counts of labels, as ``Task.survey`` returns them.
        source: the set that was counted, "training" or "evaluation".
        """
        self._labels = LabelSurvey.from_json(dict(survey))
        self._guess, self._of_set = name_guess(self._labels.word, source), name_counted_set(source)
        self._pair_guess = name_guess(self._labels.pair_word, source)
        self._word_losses = _compute_label_losses(self._labels.words)
        self.metrics = ("guess_accuracy", "guess_loss")
        share = f"{self._labels.words.share:.1%} of them"
        guessed = f"the most frequent masked word of the {source} set is {self._labels.word}, {share}"
        if self._labels.pairs:
            self._pair_losses = _compute_label_losses(self._labels.pairs)
            self.metrics = (*self.metrics, "guess_pair_accuracy", "guess_pair_loss")
            guessed += (
                f", and {self._labels.pair_word} the label of {self._labels.pairs.share:.1%} of its pairs"
            )
        left_out = describe_left_out(data, "training")
        self.note = f"evaluating on {data.examples} examples of {data.name}{left_out}; {guessed}"

    def host_sums(self, batch: Batch) -> Tensor:
        weights = batch.masked_lm_weights.float()
        sums = sum_guess_metrics(batch.masked_lm_ids, weights, self._labels.words, self._word_losses)
        if self._labels.pairs:
            labels = batch.next_sentence_labels.reshape(-1)
            # 1 for real sequences. Sequences that only fill up a batch have negative labels, and get 0.
            there = (labels >= 0).float()
            sums += sum_guess_metrics(labels.clamp(min=0), there, self._labels.pairs, self._pair_losses)
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
            "masked_lm_accuracy {masked_lm_accuracy:.5f} (always {guess}: {most_frequent_accuracy:.5f}), "
            "masked_lm_loss {masked_lm_loss:.4f} (by frequency{of_set}: {guess_masked_lm_loss:.4f})"
        ).format(guess=self._guess, of_set=self._of_set, **results)
        if "next_sentence_accuracy" not in results:
            return of_words
        return (
            "{of_words}, next_sentence_accuracy {next_sentence_accuracy:.5f} "
            "(always {pair}: {guess_next_sentence_accuracy:.5f})"
        ).format(of_words=of_words, pair=self._pair_guess, **results)


def name_guess(guess: str, source: str, what: str = "most frequent") -> str:
    """Return the guess of a baseline, with the set that it follows from unless that is the training set.

    source: the set that was counted, "training" or "evaluation".
    what: what the guess is in this set.
    """
    of_set = name_counted_set(source)
    return f"{guess}, {what}{of_set}" if of_set else guess


def name_counted_set(source: str) -> str:
    """Return the end of a phrase that names the set that a baseline follows from.

    It is empty for the training set, from which a baseline usually follows.
    source: the set that was counted, "training" or "evaluation".
    """
    return " in the evaluation set" if source == "evaluation" else ""


def _compute_label_losses(labels: Frequencies) -> Tensor:
    """Return the loss of each label if its predicted probability is its share of all labels."""
    return torch.from_numpy(labels.compute_losses()).float()


def sum_guess_metrics(ids: Tensor, weights: Tensor, labels: Frequencies, losses: Tensor) -> list[Tensor]:
    """Return [accuracy sum, weight, loss sum, weight] of the baselines that do not read
    the text, for a batch.

    The guess for the accuracy is always the most frequent label. For the loss, the probability of each label
    is its share of all labels.
    ids: labels of the batch.
    weights: 1.0 for each label that counts, otherwise 0.0.
    labels: numbers of examples with each label, from which the guess follows.
    losses: loss of each label.
    """
    right = weights[ids == labels.most_frequent].sum()
    known = losses[ids.long().clamp(max=len(losses) - 1)]
    return [right, weights.sum(), (known * weights).sum(), weights.sum()]
