"""The best evaluation of a run, which decides which checkpoint is kept and when training ends early.

The key ``keep_best`` names the result that is compared, such as ``acc``. The best evaluation so far is part
of every checkpoint's state, as an object such as::

    {"metric": "acc", "value": 0.91, "number": 40, "evaluations_since": 2}

Here the accuracy was best, 0.91, in the checkpoint number 40, and two later evaluations were not better. The
object is empty before the first evaluation and in runs without ``keep_best``. Because it is in the state, a
resumed run continues with the same best evaluation.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from bertdata.errors import SettingsError
from trainer.checkpoints.checkpoint import get_checkpoints_folder
from trainer.config.settings import Config
from trainer.tasks.task import Columns

_EVALUATED_WITH = ("eval_data", "eval_examples")
"""Settings that decide which examples are evaluated."""
_BASELINES = ("guess_", "most_frequent_")
"""Beginnings of the names of results of a baseline, which do not depend on the model."""


def check_best_metric(config: Config, columns: Columns, *, evaluates: bool) -> None:
    """Raise SettingsError if the run cannot compare its evaluations by the result that ``keep_best`` names.

    columns: the columns of the task that the run learns.
    evaluates: whether the run has data to evaluate on.
    """
    metric = config.evaluation.keep_best
    if metric is None:
        return
    if not evaluates:
        remedy = "--eval-file" if config.is_finetuning else "--eval-data"
        raise SettingsError(f"keep_best {metric}: the run evaluates nothing; give {remedy}")
    known = [name for name in columns.evaluation if not name.startswith(_BASELINES)]
    if metric not in known:
        raise SettingsError(
            f"keep_best is {metric!r}, expected a result of the evaluations: {', '.join(known)}"
        )


def add_evaluation(
    best: Mapping[str, Any], metric: str, results: Mapping[str, float], number: int
) -> dict[str, Any]:
    """Return the best evaluation after one more evaluation.

    Of equal values, the first stays the best. A value that is not a number is never the best.
    best: the best evaluation before, or {}.
    metric: name of the result that is compared.
    results: the results of the new evaluation, by name.
    number: number of the evaluated checkpoint.
    """
    value = results[metric]
    if math.isfinite(value) and (not best or _is_better(metric, value, best["value"])):
        return {"metric": metric, "value": value, "number": number, "evaluations_since": 0}
    return {**best, "evaluations_since": best["evaluations_since"] + 1} if best else {}


def _is_better(metric: str, value: float, other: float) -> bool:
    """Return whether a value of the metric is better than another: lower for a loss, else higher."""
    return value < other if metric.endswith("loss") else value > other


def describe_changed_evaluation(
    config: Config, best: Mapping[str, Any], saved_config: Mapping[str, Any]
) -> Iterator[str]:
    """Yield a warning for each changed setting with which the best evaluation cannot be compared any more.

    best: the best evaluation before a run is resumed, or {}.
    saved_config: the configuration with which it was made.
    """
    now = config.as_json()
    for key in _EVALUATED_WITH if best else ():
        if saved_config.get(key) != now[key]:
            before, after = ("not given" if one is None else one for one in (saved_config.get(key), now[key]))
            yield (
                f"the best {best['metric']} so far, {best['value']:.5g}, was measured on other examples: "
                f"{key} was {before}, and is {after} now"
            )


def has_lost_patience(config: Config, best: Mapping[str, Any]) -> bool:
    """Return whether ``patience`` evaluations in a row were not better than the best evaluation."""
    patience = config.evaluation.patience
    return patience is not None and bool(best) and best["evaluations_since"] >= patience


def describe_best(config: Config, best: Mapping[str, Any]) -> str:
    """Return the best evaluation and its checkpoint as a line for the log."""
    path = get_checkpoints_folder(str(config.run.output_dir)) / f"step-{best['number']:08d}"
    return f"the best {best['metric']} is {best['value']:.5g}, of {path}"
