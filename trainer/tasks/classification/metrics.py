"""GLUE's metrics, files of predictions, and a baseline.

The baseline always guesses the most frequent label, without reading the text.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bertdata.dataset.label_counts import Frequencies, quote_baseline
from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import InputError
from bertdata.examples.columns import Array
from trainer.tasks.classification.head_labels import join_first, quote_label
from trainer.tasks.classification.presets import ClassificationTask
from trainer.tasks.data_file import DataFile

if TYPE_CHECKING:
    from typing_extensions import Self

Labels = Sequence[int | float] | Array
Metric = Callable[[Array, Array], dict[str, float]]


def score_labels(metrics: str, predicted: Labels, gold: Labels) -> dict[str, float]:
    """Return the metrics of a task for predictions.

    metrics: name of the metrics in METRICS, such as "matthews".
    predicted: predicted label ids or scores.
    gold: correct label ids or scores, in the same order.
    """
    assert len(predicted) == len(gold) > 0, f"{len(predicted)} predictions for {len(gold)} labels"
    measure, _ = METRICS[metrics]
    return measure(np.asarray(predicted), np.asarray(gold))


def compute_accuracy(predicted: Array, gold: Array) -> dict[str, float]:
    """Return the metric acc, which is the share of correct labels."""
    return {"acc": float((predicted == gold).mean())}


def compute_accuracy_and_f1(predicted: Array, gold: Array) -> dict[str, float]:
    """Return the metrics acc, f1 (of label 1), and acc_and_f1, which is the mean of both."""
    acc = compute_accuracy(predicted, gold)["acc"]
    right = int(((predicted == 1) & (gold == 1)).sum())
    found = int((predicted == 1).sum()) + int((gold == 1).sum())
    f1 = 2 * right / found if found else 0.0
    return {"acc": acc, "f1": f1, "acc_and_f1": (acc + f1) / 2}


def compute_matthews(predicted: Array, gold: Array) -> dict[str, float]:
    """Return the metric mcc, which is Matthews' correlation for two labels.

    It is 0.0 if all predicted labels or all correct labels are equal.
    """
    return {"mcc": _correlate((predicted == 1).astype(float), (gold == 1).astype(float))}


def compute_correlations(predicted: Array, gold: Array) -> dict[str, float]:
    """Return Pearson's correlation, Spearman's correlation, and their mean.

    They are 0.0 if all predicted scores or all correct scores are equal.
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
    """Return the rank of each value. Equal values get the mean of their ranks."""
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
"""For each value of ``ClassificationTask.metrics``, the function for the metrics, and their names.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class GuessBaseline:
    """A baseline that does not read the text, and always guesses the most frequent label or the mean score.

    counts: number of examples with each label. Empty for scores.
    mean: mean of the scores. None for labels.
    """

    task: ClassificationTask
    counts: Sequence[int] = ()
    mean: float | None = None

    @classmethod
    def from_labels(cls, task: ClassificationTask, labels: Labels) -> "Self":
        """Return the baseline for a set of label ids or scores."""
        found = np.asarray(labels)
        if task.regression:
            return cls(task=task, mean=float(found.mean()))
        return cls(task=task, counts=np.bincount(found, minlength=len(task.labels or ())).tolist())

    def as_json(self) -> dict[str, Any]:
        """Return the arguments of this class, except ``task``, as JSON values."""
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
        """Text about the baseline for a log."""
        if self.mean is not None:
            return f"the mean score is {self.name}"
        return f"{self.name} is the label of {Frequencies(self.counts).share:.1%}"

    def compute_scores(self, gold: Array) -> dict[str, float]:
        """Return the task's metrics for a prediction that is the guess for every example.

        gold: correct label ids or scores.
        """
        guess = Frequencies(self.counts).most_frequent if self.mean is None else self.mean
        return score_labels(self.task.metrics, np.full_like(gold, guess), gold)

    def compute_loss(self, gold: Array) -> float:
        """Return the baseline's mean loss on these labels or scores.

        For labels, the predicted probability of each label is its share of all labels. For scores, the
        prediction is the mean of all scores.
        gold: correct label ids or scores.
        """
        if self.mean is not None:
            return float(((gold - self.mean) ** 2).mean())
        return float(Frequencies(self.counts).compute_losses()[gold.astype(int)].mean())


def count_labels(task: ClassificationTask, data: OpenedDataset) -> GuessBaseline:
    """Return the baseline that follows from the labels or scores in a dataset of features."""
    return GuessBaseline.from_labels(task, read_all_labels(task, data))


def describe_dataset_labels(task: ClassificationTask, data: OpenedDataset) -> str:
    """Return text about a dataset of features: the id, name and count of each label, or the
    range of the scores.
    """
    return describe_labels(task, read_all_labels(task, data))


def describe_labels(task: ClassificationTask, found: Labels) -> str:
    """Return text with the id, name and count of each label, or with the range of the scores.

    For example, with two labels::

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
    return f"labels by number: {join_first(told)}"


def read_all_labels(task: ClassificationTask, data: OpenedDataset) -> Array:
    """Return the label ids or scores of all examples in a dataset of features."""
    return np.concatenate(
        [_read_batch_labels(batch, task) for shard in data.shards for batch in data.batches(shard)]
    )


def _read_batch_labels(batch: Any, task: ClassificationTask) -> Array:
    """Return the label ids or scores of a batch. The bits of a score are stored as two halves."""
    if not task.regression:
        return np.asarray(batch.label_ids, np.int64)
    bits = np.asarray(batch.score_highs, np.uint32) << 16 | np.asarray(batch.score_lows, np.uint32)
    return bits.view(np.float32).astype(np.float64)


_HEADING = "index\tprediction"


def format_predictions(predicted: Sequence[int | float], task: ClassificationTask) -> str:
    """Return a tab-separated table with the index and the prediction of each example.

    Labels are written with their names.
    """
    names = task.labels
    lines = [_HEADING]
    for number, value in enumerate(predicted):
        lines.append(f"{number}\t{names[int(value)] if names else f'{value:.3f}'}")
    return "\n".join(lines) + "\n"


def read_predictions(file: DataFile, task: ClassificationTask, count: int) -> list[int | float]:
    """Read the predicted label ids or scores of ``count`` examples from a file.

    The file has one of three forms:

    - the heading ``index prediction``, then an index and a prediction per line (run_glue.py)
    - a label or a score per line
    - a probability for each label on each line (run_classifier.py). The label with the highest
      probability is taken.

    Raises InputError that names the line.
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
    """Return the label id in a row of predictions, or the score if the task has no labels.

    where: file and line of the row, for the error message.
    labels: the task's labels. Empty for scores.
    """
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
    """Return the number in a text. Raise InputError if the text is not a number."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{where}: holds {text!r}, expected a number") from None
