"""What travels from the training loop to the logs, and what every log is made of."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRecord:
    """Means over ``updates`` updates, the last of them number ``step`` (from 1); seconds are their sum."""

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
    updates: int = 1


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


@dataclass(kw_only=True, slots=True)
class Timing:
    """Updates and sequences that were timed, and how long they took."""

    updates: int = 0
    sequences: int = 0
    seconds: float = 0.0

    def add(self, record: StepRecord) -> None:
        self.updates += record.updates
        self.sequences += record.sequences
        self.seconds += record.seconds

    @property
    def seconds_per_update(self) -> float | None:
        """None where nothing was timed."""
        return self.seconds / self.updates if self.updates else None

    @property
    def sequences_per_second(self) -> float | None:
        """None where nothing was timed."""
        return self.sequences / self.seconds if self.seconds > 0 else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One line of the logs: means over the updates since the last line, and the time at which it ends."""

    means: StepRecord
    step_loss: float
    timing: Timing
    time: float  # seconds since 1970


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """A whole run: seconds from start to end, seconds in updates, and what was timed."""

    final_loss: float | None
    e2e_seconds: float
    raw_seconds: float
    timing: Timing
    status: str
    time: float


class Sink:
    """One log; each does what concerns it."""

    def row(self, row: Row) -> None: ...

    def evaluation(self, record: EvaluationRecord, time: float) -> None: ...

    def event(self, name: str, value: Any, time: float) -> None: ...

    def close(self, summary: Summary) -> None: ...
