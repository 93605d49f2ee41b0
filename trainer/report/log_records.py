"""Records that go from the training loop to the logs, and the base class of all loggers."""

from dataclasses import dataclass
from typing import Any

Values = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRecord:
    """One update, number ``step`` (from 1); it is not timed if it compiled the model.

    sequences, tokens, operations: real ones, without padding, over all workers; the operations are those of
    matrix products. data_wait: seconds in which a worker waited for its examples. gradient_norm: before
    clipping, where it was read. memory_gib: the most that a device has used.
    """

    step: int
    epoch: int
    loss: float
    metrics: dict[str, float]
    learning_rate: float
    seconds: float
    is_timed: bool = True
    sequences: int
    tokens: int = 0
    operations: float = 0.0
    data_wait: float = 0.0
    gradient_norm: float | None = None
    memory_gib: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationRecord:
    """One evaluation after update ``step``, on ``examples`` examples, after training on ``trained``.

    text: the results in one line for a person.
    """

    step: int
    trained: int
    examples: int
    results: dict[str, float]
    text: str

    def values(self) -> Values:
        """The numbers, in the order of a table's columns."""
        return {"step": self.step, "trained": self.trained, "examples": self.examples, **self.results}


class Logger:
    """Base of a log; subclasses override the methods that they have a use for.

    Times are seconds since 1970. A row has the fields of a StepRecord, with its metrics by name: the last
    update's, but loss, metrics, seconds and data_wait are means over the row's updates; those that are not
    known are left out. It also has ``step_loss`` (the last update's), ``total_time`` (seconds in all updates
    so far) and, if any of its updates were timed, ``seconds_per_update`` and the rates of ``Pace.rates``.
    The keys of a summary are dllogger's.
    """

    def row(self, row: Values, time: float) -> None: ...

    def evaluation(self, record: EvaluationRecord, time: float) -> None: ...

    def event(self, name: str, value: Any, time: float) -> None: ...

    def close(self, summary: Values, status: str, time: float) -> None: ...
