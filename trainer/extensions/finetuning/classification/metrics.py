"""Metrics of GLUE's tasks, each from 0 or -1 to 1."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Labels = Sequence[int | float] | Array
Metric = Callable[[Array, Array], dict[str, float]]


def score_labels(metrics: str, predicted: Labels, gold: Labels) -> dict[str, float]:
    """The metrics of that name in METRICS; both hold label numbers, or scores, in the same order."""
    assert len(predicted) == len(gold) > 0, f"{len(predicted)} predictions for {len(gold)} labels"
    return METRICS[metrics](np.asarray(predicted), np.asarray(gold))


def accuracy(predicted: Array, gold: Array) -> dict[str, float]:
    """acc: the share of labels that are right."""
    return {"acc": float((predicted == gold).mean())}


def accuracy_and_f1(predicted: Array, gold: Array) -> dict[str, float]:
    """acc, f1 of label 1, and their mean acc_and_f1."""
    acc = accuracy(predicted, gold)["acc"]
    right = int(((predicted == 1) & (gold == 1)).sum())
    found = int((predicted == 1).sum()) + int((gold == 1).sum())
    f1 = 2 * right / found if found else 0.0
    return {"acc": acc, "f1": f1, "acc_and_f1": (acc + f1) / 2}


def matthews(predicted: Array, gold: Array) -> dict[str, float]:
    """mcc: Matthews' correlation of two labels, 0.0 where either side has only one."""
    return {"mcc": _correlation((predicted == 1).astype(float), (gold == 1).astype(float))}


def correlation(predicted: Array, gold: Array) -> dict[str, float]:
    """Pearson's and Spearman's correlation and their mean, 0.0 where one side is constant."""
    pearson = _correlation(predicted, gold)
    spearman = _correlation(_ranks(predicted), _ranks(gold))
    return {"pearson": pearson, "spearmanr": spearman, "corr": (pearson + spearman) / 2}


def _correlation(a: Array, b: Array) -> float:
    a, b = a - a.mean(dtype=np.float64), b - b.mean(dtype=np.float64)
    norm = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / norm if norm else 0.0


def _ranks(values: Array) -> Array:
    """The rank of each value; equal ones have the mean of theirs."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    means: Array = last - (counts - 1) / 2
    return means[places]


METRICS: dict[str, Metric] = {
    "accuracy": accuracy,
    "accuracy_and_f1": accuracy_and_f1,
    "matthews": matthews,
    "correlation": correlation,
}
"""Metrics by name."""
