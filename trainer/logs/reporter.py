"""The report of a run: rows of means, results and events, which a Reporter on rank 0 sends to every log."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

Values = dict[str, Any]

MEASURES = (
    *("tokens_per_second", "tflops", "peak_share", "memory_gib", "gradient_norm"),
    *("data_wait", "data_wait_share", "fill"),
)
"""Names of a row's numbers that only this trainer logs, so that other programs have no names for them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UpdateRecord:
    """Figures of one update for the logs. step: the update's number, from 1.

    is_timed: False if the model was compiled during the update.
    sequences: examples over all workers. tokens, operations: over all workers, without padding. Operations
    are those of matrix products.
    slots: tokens with padding. data_wait: seconds that a worker waited for its examples.
    gradient_norm: norm before clipping, if it was read. memory_gib: most memory that a device has used.
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
    slots: int = 0
    data_wait: float = 0.0
    gradient_norm: float | None = None
    memory_gib: float | None = None


class Logger:
    """Base class of a log, whose methods a Reporter calls. Subclasses override the methods that they need.
    The names below are methods, with the values that each gets.

    Times are seconds since 1970.
    row: has the fields of an UpdateRecord and its metrics by name. The fields are those of the last update in
    the row, except that loss, metrics, seconds and data_wait are means over all updates in the row. Unknown
    values are left out. There are also ``step_loss`` (loss of the last update), ``total_time`` (seconds of
    all updates so far) and, if an update of the row was timed, ``seconds_per_update`` and the rates of
    ``Reporter._compute_rates``.
    evaluation: has the values of an ``EvaluationRecord``, and its text. plan: has the numbers of ``RunPlan``.
    reach: has the update and examples at which an evaluation begins. close: has a summary with dllogger's
    keys.
    """

    def row(self, row: Values, time: float) -> None: ...

    def evaluation(self, values: Values, text: str, time: float) -> None: ...

    def event(self, name: str, value: Any, time: float) -> None: ...

    def describe(self, values: Values, time: float) -> None: ...

    def plan(self, values: Values, time: float) -> None: ...

    def reach(self, step: int, trained: int, time: float) -> None: ...

    def close(self, summary: Values, status: str, time: float) -> None: ...


_SUMMED_FIELDS = ("seconds", "sequences", "tokens", "operations", "slots", "data_wait", "is_timed")
"""Fields of UpdateRecord that are summed over timed updates to compute the rates."""

UNTIMED_UPDATES = 6
"""Updates after the start and after each checkpoint that are not timed, because they are slower."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunPlan:
    """The numbers of a run before its first update.

    workers: number of devices. accumulation: micro-batches per update on each device.
    update_examples: examples per update over all workers.
    interval: examples trained between two evaluations, 0 for a single evaluation at the end.
    eval_examples: examples of an evaluation. trained, step: examples and updates made in this phase before.
    sequence_length: most ids of a sequence in the data.
    """

    workers: int
    accumulation: int
    update_examples: int
    interval: int
    eval_examples: int
    trained: int
    step: int
    sequence_length: int


class Reporter(AbstractContextManager["Reporter"]):
    """Collects records of updates into a row every ``log_every`` updates, and sends it to the loggers.

    It also sends the events that MLPerf defines: "init" until ``begin`` is called, then blocks of training
    with evaluations between them. In a run that only evaluates, there are only the events of evaluations.
    Loggers count in steps. An update is ``steps_of_update`` steps, since some programs count micro-batches.
    """

    def __init__(
        self,
        loggers: Sequence[Logger],
        *,
        log_every: int = 1,
        devices: int = 1,
        peak: float | None = None,
        clock: Callable[[], float] = time.time,
        steps_of_update: int = 1,
        trains: bool = True,
    ) -> None:
        """Start the clock, and write the first event if the run trains.

        devices: number of devices in the run. peak: most operations per second of a device, None if not
        known.
        """
        self._loggers, self._log_every, self._clock = loggers, log_every, clock
        self._devices, self._peak = devices, peak
        self._steps_of_update, self._trains = steps_of_update, trains
        self._start = clock()
        self._waiting: list[UpdateRecord] = []
        # sums over timed updates: one of the current row, one of the whole run
        self._row_sums, self._sums = _make_zero_sums(), _make_zero_sums()
        self._settling = UNTIMED_UPDATES
        self._summary = {"raw_train_time": 0.0}
        self._phase = ""
        self._between: float | None = None  # time since which neither a block nor an evaluation is open
        if trains:
            self._phase = "init"
            self.event("init_start")

    def begin(self) -> None:
        """Write the events that mark the start of training."""
        self._enter("block", "run_start")

    def update(self, record: UpdateRecord) -> None:
        """Add the record of an update. Write a row if its number is a multiple of log_every."""
        if self._between is not None:
            self._start_block()
        self._waiting.append(record)
        self._summary["final_loss"] = record.loss
        self._summary["raw_train_time"] += record.seconds
        if self._settling <= 0 and record.is_timed:
            for sums in (self._row_sums, self._sums):
                for name in sums:
                    sums[name] += getattr(record, name)
        self._settling -= 1
        if record.step % self._log_every == 0:
            self._write_row()

    def begin_evaluation(self, step: int = 0, trained: int = 0) -> None:
        """Write the event for the start of an evaluation, after this update and this number of examples."""
        self._call_loggers("reach", step * self._steps_of_update, trained)
        self._between = None
        self._enter("eval")

    def evaluation(self, values: Values, text: str) -> None:
        """Write the results of the evaluation. text: the results as one line for people.

        If training continues, its next block begins now. But the event for the block is written only with the
        next update, because there may be no further update.
        """
        self._call_loggers("evaluation", {**values, "step": values["step"] * self._steps_of_update}, text)
        self.event("eval_stop")
        self._phase, self._between = "", self._clock()

    def _start_block(self) -> None:
        """Write the start of the block that began when the last evaluation ended."""
        since, self._between, self._phase = self._between, None, "block"
        for logger in self._loggers:
            logger.event("block_start", True, since or self._clock())

    def saved(self, step: int) -> None:
        """Write the event for a checkpoint. The next updates are not timed."""
        self._settling = UNTIMED_UPDATES
        self.event("checkpoint", step * self._steps_of_update)

    def compute_waited_share(self, least_seconds: float) -> float:
        """Return the share of the timed seconds spent waiting for data, 0 before ``least_seconds`` were
        timed.
        """
        seconds = self._sums["seconds"]
        return self._sums["data_wait"] / seconds if seconds >= least_seconds else 0.0

    def describe(self, **values: Any) -> None:
        """Write facts about the run (for example start point, weights, device) to the logs, by name."""
        self._call_loggers("describe", values)

    def plan(self, planned: RunPlan) -> None:
        """Send the numbers of the run to every log."""
        told = asdict(planned) | {"step": planned.step * self._steps_of_update}
        self._call_loggers("plan", told)

    def event(self, name: str, value: Any = True) -> None:
        """Send an event to every log."""
        self._call_loggers("event", name, value)

    def close(self, status: str = "success") -> Values:
        """Write the last row and close every log. Return the summary.

        status: "success", "stopped" (on request, to be resumed) or "aborted". MLPerf has no "stopped".
        """
        if self._waiting:
            self._write_row()
        if self._phase:
            self.event(f"{self._phase}_stop")
        if self._trains:
            self.event("run_stop", "aborted" if status == "stopped" else status)
        summary = self._summary | {"e2e_train_time": self._clock() - self._start}
        summary |= {f"training_{name}": rate for name, rate in self._compute_rates(self._sums).items()}
        self._call_loggers("close", summary, status)
        self._loggers = []
        return summary

    def __exit__(self, *failure: object) -> None:
        """Close the logs of a run that ended with an error."""
        if self._loggers:
            self.close("aborted")

    def _write_row(self) -> None:
        """Write the mean of the collected records as a row."""
        rows = [_flatten_record(record) for record in self._waiting]
        means = ("loss", *self._waiting[0].metrics, "seconds", "data_wait")
        row = rows[-1] | {name: fmean(row[name] for row in rows) for name in means}
        row |= {"step_loss": rows[-1]["loss"], "total_time": self._summary["raw_train_time"]}
        row["step"] *= self._steps_of_update
        if updates := self._row_sums["is_timed"]:
            row |= {
                "seconds_per_update": self._row_sums["seconds"] / updates,
                **self._compute_rates(self._row_sums),
            }
        if "memory_gib" in row:
            self._summary["peak_memory_gib"] = row["memory_gib"]
        self._waiting, self._row_sums = [], _make_zero_sums()
        self._call_loggers("row", row)

    def _compute_rates(self, sums: Mapping[str, float]) -> Values:
        """Return the rates by name, or {} if no time was measured. Rates of tokens need a count of tokens.

        tokens_per_second: without padding. tflops: 10^12 operations per second and device. peak_share: tflops
        divided by the device's peak. data_wait_share: share of the time spent waiting for data. fill: share
        of the tokens in the micro-batches that are not padding.
        """
        seconds, sequences, tokens, operations, slots, data_wait, _ = sums.values()
        if seconds <= 0:
            return {}
        found = {"sequences_per_second": sequences / seconds}
        if tokens:
            rate = operations / seconds / self._devices
            found |= {"tokens_per_second": tokens / seconds, "tflops": rate / 1e12}
            if self._peak is not None:
                found["peak_share"] = rate / self._peak
            found["data_wait_share"] = data_wait / seconds
            if slots:
                found["fill"] = tokens / slots
        return found

    def _call_loggers(self, method: str, *values: Any) -> None:
        """Call a method of every logger, with the current time as last argument."""
        now = self._clock()
        for logger in self._loggers:
            getattr(logger, method)(*values, now)

    def _enter(self, phase: str, *between: str) -> None:
        """Write the end of the current phase and the start of another, with events between them."""
        ended = [f"{self._phase}_stop"] if self._phase else []
        for name in (*ended, *between, f"{phase}_start"):
            self.event(name)
        self._phase = phase


def _make_zero_sums() -> dict[str, float]:
    """Return a sum of 0 for each field of UpdateRecord that is summed over updates."""
    return dict.fromkeys(_SUMMED_FIELDS, 0.0)


def _flatten_record(record: UpdateRecord) -> Values:
    """Return the record's known fields and metrics by name, without counts that are only needed for rates."""
    row = {name: value for name, value in asdict(record).items() if value is not None}
    del row["tokens"], row["operations"], row["slots"], row["is_timed"]
    metrics: Values = row.pop("metrics")
    return row | metrics
