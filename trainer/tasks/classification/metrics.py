"""GLUE's metrics, predictions in files, and a baseline that guesses the most frequent label without reading
the text.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bertdata.dataset.label_counts import Frequencies, quote_baseline
from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import InputError
from bertdata.examples.columns import Array
from trainer.tasks.classification.head_labels import MOST_SHOWN, quote_label
from trainer.tasks.classification.presets import ClassificationTask
from trainer.tasks.data_file import DataFile

Labels = Sequence[int | float] | Array
Metric = Callable[[Array, Array], dict[str, float]]


def score_labels(metrics: str, predicted: Labels, gold: Labels) -> dict[str, float]:
    """Compute the metrics of a task.

    metrics: name in METRICS, such as "matthews".
    predicted, gold: label ids, or scores, in the same order.
    """
    assert len(predicted) == len(gold) > 0, f"{len(predicted)} predictions for {len(gold)} labels"
    measure, _ = METRICS[metrics]
    return measure(np.asarray(predicted), np.asarray(gold))


def compute_accuracy(predicted: Array, gold: Array) -> dict[str, float]:
    """Return acc, the share of correct labels."""
    return {"acc": float((predicted == gold).mean())}


def compute_accuracy_and_f1(predicted: Array, gold: Array) -> dict[str, float]:
    """Return acc, f1 of label 1, and their mean acc_and_f1."""
    acc = compute_accuracy(predicted, gold)["acc"]
    right = int(((predicted == 1) & (gold == 1)).sum())
    found = int((predicted == 1).sum()) + int((gold == 1).sum())
    f1 = 2 * right / found if found else 0.0
    return {"acc": acc, "f1": f1, "acc_and_f1": (acc + f1) / 2}


def compute_matthews(predicted: Array, gold: Array) -> dict[str, float]:
    """Return mcc, Matthews' correlation of two labels. It is 0.0 if either side has only one label."""
    return {"mcc": _correlate((predicted == 1).astype(float), (gold == 1).astype(float))}


def compute_correlations(predicted: Array, gold: Array) -> dict[str, float]:
    """Return Pearson's and Spearman's correlation and their mean. They are 0.0 if all predictions or all gold
    scores are equal.
    """
    pearson = _correlate(predicted, gold)
    spearman = _correlate(_rank_values(predicted), _rank_values(gold))
    return {"pearson": pearson, "spearmanr": spearman, "corr": (pearson + spearman) / 2}


def _correlate(a: Array, b: Array) -> float:
    """Return Pearson's correlation, or 0.0 if all values of ``a`` or of ``b`` are equal."""
    a, b = a - a.mean(dtype=np.float64), b - b.mean(dtype=np.float64)
    norm = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / norm if norm else 0.0


def _rank_values(values: Array) -> Array:
    """Return the rank of each value. Equal values share the mean of their ranks."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    means: Array = last - (counts - 1) / 2
    return means[places]


METRICS: dict[str, tuple[Metric, tuple[str, ...]]] = {
    "accuracy": (compute_accuracy, ("acc",)),
    "accuracy_and_f1": (compute_accuracy_and_f1, ("acc", "f1", "acc_and_f1")),
    "matthews": (compute_matthews, ("mcc",)),
    "correlation": (compute_correlations, ("pearson", "spearmanr", "corr")),
}
"""For each value of ClassificationTask.metrics, the function that computes them and its results' names."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GuessBaseline:
    """The baseline that does not read the text: always the most frequent label, or always the mean score.

    counts: number of examples of each label. Empty for scores.
    mean: mean score. None for labels.
    """

    task: ClassificationTask
    counts: Sequence[int] = ()
    mean: float | None = None

    @classmethod
    def of_labels(cls, task: ClassificationTask, labels: Labels) -> Self:
        """Return the baseline for these label ids or scores."""
        found = np.asarray(labels)
        if task.regression:
            return cls(task=task, mean=float(found.mean()))
        return cls(task=task, counts=np.bincount(found, minlength=len(task.labels or ())).tolist())

    def as_json(self) -> dict[str, Any]:
        """Return the arguments with which this class is made, except ``task``."""
        return {"counts": self.counts, "mean": self.mean}

    @property
    def name(self) -> str:
        """The guessed label in quotes, or the guessed score."""
        if self.mean is not None:
            return f"{self.mean:.3f}"
        label = Frequencies(self.counts).most_frequent
        return quote_baseline(self.task.labels[label] if self.task.labels else str(label))

    @property
    def description(self) -> str:
        """The baseline as text for a log."""
        if self.mean is not None:
            return f"the mean score is {self.name}"
        return f"{self.name} is the label of {Frequencies(self.counts).share:.1%}"

    def compute_scores(self, gold: Array) -> dict[str, float]:
        """Return the task's metrics for predicting the guess for every example."""
        guess = Frequencies(self.counts).most_frequent if self.mean is None else self.mean
        return score_labels(self.task.metrics, np.full_like(gold, guess), gold)

    def compute_loss(self, gold: Array) -> float:
        """Return the baseline's mean loss on these labels or scores.

        For labels, the baseline predicts each label with a probability equal to its share of all labels. For
        scores, it predicts the mean of all scores.
        """
        if self.mean is not None:
            return float(((gold - self.mean) ** 2).mean())
        return float(Frequencies(self.counts).compute_losses()[gold.astype(int)].mean())


def count_labels(task: ClassificationTask, data: OpenedDataset) -> GuessBaseline:
    """Return the baseline from the labels or scores in a dataset of features."""
    return GuessBaseline.of_labels(task, _read_all_labels(task, data))


def describe_dataset_labels(task: ClassificationTask, data: OpenedDataset) -> str:
    """Return each label's id, name and count in a dataset of features as text, or the range of the scores."""
    return describe_labels(task, _read_all_labels(task, data))


def describe_labels(task: ClassificationTask, found: Labels) -> str:
    """Return each label's id, name and count as text, or the range of the scores.

        labels by number: 0 bad (28), 1 good (20)
    found: label ids, or scores.
    """
    if task.regression:
        scores = np.asarray(found)
        low, high, mean = (float(value) for value in (scores.min(), scores.max(), scores.mean()))
        return f"{len(scores)} scores from {low:g} to {high:g}, mean {mean:.3f}"
    names = task.labels or ()
    counts = np.bincount(np.asarray(found), minlength=len(names)).tolist()
    told = [f"{number} {quote_label(names[number])} ({counts[number]})" for number in range(len(names))]
    more = [f"{len(told) - MOST_SHOWN} more"] if len(told) > MOST_SHOWN else []
    return f"labels by number: {', '.join([*told[:MOST_SHOWN], *more])}"


def _read_all_labels(task: ClassificationTask, data: OpenedDataset) -> Array:
    """Return the label ids, or scores, of all examples in a dataset of features."""
    return np.concatenate(
        [_read_batch_labels(batch, task) for shard in data.shards for batch in data.batches(shard)]
    )


def _read_batch_labels(batch: Any, task: ClassificationTask) -> Array:
    """Return the label ids of a batch, or its scores, whose bits are stored as two halves."""
    if not task.regression:
        return np.asarray(batch.label_ids, np.int64)
    bits = np.asarray(batch.score_highs, np.uint32) << 16 | np.asarray(batch.score_lows, np.uint32)
    return bits.view(np.float32).astype(np.float64)


_HEADING = "index\tprediction"


def format_predictions(predicted: Sequence[int | float], task: ClassificationTask) -> str:
    """Return a tab-separated table with the index and the prediction of each example.

    Labels appear by name.
    """
    names = task.labels
    lines = [_HEADING]
    for number, value in enumerate(predicted):
        lines.append(f"{number}\t{names[int(value)] if names else f'{value:.3f}'}")
    return "\n".join(lines) + "\n"


def read_predictions(file: DataFile, task: ClassificationTask, count: int) -> list[int | float]:
    """Read the predicted label ids, or scores, of ``count`` examples.

    The file has one of three forms:
    - the heading ``index prediction``, then an index and a prediction per line (run_glue.py)
    - a label or a score per line
    - on each line, a probability for each label (run_classifier.py). The most probable label counts.
    InputError names the line.
    """
    name, lines = file.path, file.text("predictions, one a line").splitlines()
    indexed = bool(lines) and lines[0] == _HEADING
    rows = [(f"{name}: line {n}", line.split("\t")) for n, line in enumerate(lines, 1) if line][indexed:]
    if len(rows) != count:
        raise InputError(f"{name}: holds {len(rows)} predictions, expected {count}, one for each example")
    for number, (where, row) in enumerate(rows if indexed else []):
        if (index := row.pop(0)) != str(number):
            raise InputError(f"{where}: has the index {index!r}, expected {number}")
    return [_parse_prediction(row, where, task.labels or ()) for where, row in rows]


def _parse_prediction(row: list[str], where: str, labels: Sequence[str]) -> int | float:
    """Return the label id in a row of predictions, or its score if there are no labels."""
    if len(row) == len(labels) > 1:
        probabilities = [_parse_number(value, where) for value in row]
        return probabilities.index(max(probabilities))
    if len(row) != 1:
        raise InputError(f"{where}: has {len(row)} predictions, expected 1")
    (found,) = row
    if not labels:
        return _parse_number(found, where)
    if found not in labels:
        raise InputError(f"{where}: predicts {found!r}, expected one of {', '.join(labels)}")
    return labels.index(found)


def _parse_number(text: str, where: str) -> float:
    """Return the number in a text. InputError otherwise."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{where}: holds {text!r}, expected a number") from None
