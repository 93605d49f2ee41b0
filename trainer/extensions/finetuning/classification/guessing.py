"""The guess that looks at no text: always the most frequent label, or always the mean score."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bertdata.dataset.label_counts import Frequencies, quoted
from bertdata.dataset.reader import OpenedDataset
from bertdata.examples.columns import Array
from trainer.extensions.finetuning.classification.metrics import Labels, score_labels
from trainer.extensions.finetuning.classification.presets import ClassificationTask


@dataclass(frozen=True, kw_only=True, slots=True)
class Guess:
    """The counts of the labels that are guessed by, or the mean score, of a table to learn from.

    Of a task with labels mean is None, of one with scores counts are empty.
    """

    task: ClassificationTask
    counts: tuple[int, ...] = ()
    mean: float | None = None

    @classmethod
    def of_labels(cls, task: ClassificationTask, labels: Labels) -> Self:
        """The guess by these label numbers, or scores."""
        found = np.asarray(labels)
        if task.regression:
            return cls(task=task, mean=float(found.mean()))
        return cls(task=task, counts=tuple(np.bincount(found, minlength=len(task.labels or ())).tolist()))

    @classmethod
    def of_json(cls, task: ClassificationTask, found: Mapping[str, Any]) -> Self:
        return cls(task=task, counts=tuple(found["counts"]), mean=found["mean"])

    def as_json(self) -> dict[str, Any]:
        return {"counts": self.counts, "mean": self.mean}

    @property
    def name(self) -> str:
        """The guessed label in quotes, or the score."""
        if self.mean is not None:
            return f"{self.mean:.3f}"
        label = Frequencies(self.counts).most_frequent
        return quoted(self.task.labels[label] if self.task.labels else str(label))

    @property
    def told(self) -> str:
        """The guess in words, for a log."""
        if self.mean is not None:
            return f"the mean score is {self.name}"
        return f"{self.name} is the label of {Frequencies(self.counts).share:.1%}"

    def scores(self, gold: Array) -> dict[str, float]:
        """The task's metrics where every example is given the guess."""
        guess = Frequencies(self.counts).most_frequent if self.mean is None else self.mean
        return score_labels(self.task.metrics, np.full_like(gold, guess), gold)

    def loss(self, gold: Array) -> float:
        """The mean loss where each label has its share as probability, or each score is the mean."""
        if self.mean is not None:
            return float(((gold - self.mean) ** 2).mean())
        return float(Frequencies(self.counts).losses()[gold.astype(int)].mean())


def count_labels(task: ClassificationTask, data: OpenedDataset) -> Guess:
    """The guess by the labels, or scores, of a dataset of features."""
    found = np.concatenate([_labels(batch, task) for shard in data.shards for batch in data.batches(shard)])
    return Guess.of_labels(task, found)


def _labels(batch: Any, task: ClassificationTask) -> Array:
    """The label numbers of a batch, or its scores, whose bits come as two halves."""
    if not task.regression:
        return np.asarray(batch.label_ids, np.int64)
    bits = np.asarray(batch.score_highs, np.uint32) << 16 | np.asarray(batch.score_lows, np.uint32)
    return bits.view(np.float32).astype(np.float64)
