"""What travels from the training loop to the logs, and what every log is made of."""

from dataclasses import dataclass
from typing import Any

Values = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRecord:
    """One update, number ``step`` (from 1)."""

    step: int
    epoch: int
    loss: float
    mlm_loss: float
    nsp_loss: float
    mlm_accuracy: float
    nsp_accuracy: float
    learning_rate: float
    seconds: float
    sequences: int


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationRecord:
    """One evaluation after update ``step``, of ``examples`` examples; ``trained`` were seen in training.

    most_frequent_accuracy: what always guessing the most frequent token would reach.
    """

    step: int
    trained: int
    examples: int
    loss: float
    masked_lm_accuracy: float
    masked_lm_loss: float
    next_sentence_accuracy: float
    next_sentence_loss: float
    most_frequent_accuracy: float


class Sink:
    """One log; each does what concerns it. Times are seconds since 1970.

    A row has the fields of a StepRecord: of the last update, but means of losses, accuracies and seconds;
    and also ``step_loss``, the last update's, ``total_time``, the seconds in updates so far, and, if
    updates of it were timed, ``seconds_per_update`` and ``sequences_per_second``.
    Results have the fields of an EvaluationRecord. The summary is named as in dllogger.
    """

    def row(self, row: Values, time: float) -> None: ...

    def evaluation(self, results: Values, time: float) -> None: ...

    def event(self, name: str, value: Any, time: float) -> None: ...

    def close(self, summary: Values, status: str, time: float) -> None: ...
