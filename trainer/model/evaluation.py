"""The seam between a run's evaluations and what is learned, and the evaluation of pre-training."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from bertdata.dataset.reader import OpenedDataset
from bertdata.examples.groups import masks_of
from trainer.data.batches import Batch
from trainer.data.opening import left_out_words

MetricTotals = Mapping[str, tuple[float, float]]
"""Of each metric its sum and its weight, over any number of batches and workers."""

_SURVEYED_EXAMPLES = 20_000


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

    Beside them stands the accuracy of always guessing one token.
    """

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

    def results(self, totals: MetricTotals, kept: Sequence[Any]) -> dict[str, float]:
        means = {name: total / max(weight, 1e-5) for name, (total, weight) in totals.items()}
        found = {
            "loss": means["mlm_loss"],
            "masked_lm_accuracy": means["mlm_accuracy"],
            "masked_lm_loss": means["mlm_loss"],
        }
        if "nsp_loss" in means:
            found["loss"] += means["nsp_loss"]
            found["next_sentence_accuracy"] = means["nsp_accuracy"]
            found["next_sentence_loss"] = means["nsp_loss"]
        return found | {"most_frequent_accuracy": means["guess_accuracy"]}

    def describe(self, results: Mapping[str, float]) -> str:
        of_words = (
            "masked_lm_accuracy {masked_lm_accuracy:.5f} "
            "(always guessing the most frequent token: {most_frequent_accuracy:.5f}), "
            "masked_lm_loss {masked_lm_loss:.4f}"
        ).format(**results)
        if "next_sentence_accuracy" not in results:
            return of_words
        return f"{of_words}, next_sentence_accuracy {results['next_sentence_accuracy']:.5f}"


def find_most_frequent(data: OpenedDataset) -> int:
    """The most frequent label of the dataset's first 20,000 examples, the smallest id among equals."""
    counts = Counter[int]()
    seen = 0
    for batch in (batch for shard in data.shards for batch in data.batches(shard)):
        counts.update(masks_of(batch).originals.tolist())
        seen += len(batch)
        if seen >= _SURVEYED_EXAMPLES:
            break
    return min(counts, key=lambda token: (-counts[token], token), default=0)
