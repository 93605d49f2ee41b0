"""The names of a task's metrics in the reports of a run."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Columns:
    """The columns of a task in a run's tables, and the metrics that a person watches.

    training: for each column of training.csv the metric whose mean it holds.
    evaluation: the keys of an evaluation's results, in the order of evaluation.csv.
    shown: the metric beside the loss in the progress bar.
    target: the key of the results that --target-accuracy and MLPerf's eval_accuracy refer to. whole: its
    largest value, which --target-accuracy is a share of.
    curves: for each label of the picture the beginnings of its columns' names in training.csv and
    evaluation.csv. The ends are loss, and acc or accuracy.
    """

    training: Mapping[str, str]
    evaluation: tuple[str, ...]
    shown: str
    target: str
    curves: Mapping[str, tuple[str, str]]
    whole: float = 1.0
