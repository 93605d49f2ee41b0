"""The results that the functions of ``import trainer`` return."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationResult:
    """The result of an evaluation.

    step: number of the update after which the model was evaluated. 0 for another program's model.
    trained: number of examples that the model had been trained on.
    examples: number of examples that were evaluated. 0 if the run only made predictions.
    metrics: the measured values by name, such as masked_lm_accuracy. The names are the columns of
        evaluation.csv.
    text: the values in one line for people, with the baselines next to them.
    warnings: the warnings of the evaluation. They were printed too.
    """

    step: int
    trained: int
    examples: int
    metrics: Mapping[str, float]
    text: str
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"step {self.step}: evaluated {self.examples} examples: {self.text}"


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingResult:
    """The result of a training run.

    output_dir: directory of the run, from which ``predict``, ``convert`` and ``evaluate`` read the model.
    is_finished: True if all updates were made, or the target accuracy was reached. False if the run was
        stopped, for example by an interrupt of the notebook's kernel. ``resume=True`` continues it.
    step: number of the last update, counted from the beginning of the run's last phase.
    checkpoint: path of the newest checkpoint. None if the run wrote none.
    loss: loss of the last update. None if this call made no update.
    rows: the rows that were logged every ``log_every`` updates, with step, loss, learning rate and so on.
        ``pandas.DataFrame(result.rows)`` is a table of them.
    evaluations: the results of the evaluations, in order.
    predictions: directory with the predictions of fine-tuning for a file without answers. None: there are
        none.
    seconds: time that the run took.
    warnings: the warnings of the run. They were printed too.
    """

    output_dir: str
    is_finished: bool
    step: int
    checkpoint: str | None
    loss: float | None
    rows: tuple[Mapping[str, Any], ...] = field(repr=False)
    evaluations: tuple[EvaluationResult, ...]
    predictions: str | None = None
    seconds: float
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ConvertResult:
    """The result of converting a checkpoint.

    directory: the directory that was written.
    text: a sentence about what was written, as the command ``convert`` prints it.
    warnings: the warnings of the conversion. They were printed too.
    """

    directory: str
    text: str
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text
