"""The report of a run: a Reporter on rank 0 sends rows of means, results of evaluations and events to every
log.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bertdata.errors import MissingInputError
from bertdata.io import storage
from trainer.logs.unfinished_row import MEAN_FIELDS, TIMED_FIELDS, RowMeans, UnfinishedRow

Values = dict[str, Any]

MEASURES = (
    *("tokens_per_second", "tflops", "peak_share", "memory_gib", "gradient_norm"),
    *("data_wait", "data_wait_share", "fill"),
)
"""Names of the numbers in a row that only this trainer logs. Other programs have no names for them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UpdateRecord:
    """Numbers about one update, for the logs.

    step: number of the update, from 1.
    is_timed: False if the model was compiled during the update.
    sequences: number of examples over all workers.
    tokens: number of tokens over all workers, without padding.
    operations: operations of matrix products over all workers, without padding.
    slots: number of tokens over all workers, with padding.
    data_wait: seconds that a worker waited for its examples.
    gradient_norm: norm before clipping, or None if it was not read from the device.
    memory_gib: largest amount of memory that a device has used.
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


def flush_log(path: Path) -> None:
    """Force a log and its name to disk. Nothing happens if somebody has removed it."""
    with suppress(MissingInputError):
        storage.flush_file(str(path))
    storage.flush_directory(str(path.parent))


class Logger:
    """Base class of a log. A Reporter calls the methods below, and subclasses override those that they need.

    Times are seconds since 1970. The methods get these values:
    row: the fields of an UpdateRecord, and the metrics by name. Loss, metrics, seconds, sequences and
    data_wait are means over the updates of the row, and all other fields are those of its last update.
    Unknown values are left out. There are also ``step_loss`` (loss of the last update), ``total_time``
    (seconds of all updates since the run was started or resumed) and, if an update of the row was timed,
    ``seconds_per_update`` and the rates of ``Reporter._compute_rates``.
    evaluation: the values of an ``EvaluationRecord``, and the same results as text.
    plan: the numbers of ``RunPlan``.
    reach: the number of the update before an evaluation, and the number of examples trained on by then.
    close: a summary with dllogger's keys.

    replaces_terminal: True for a log that takes the place of the lines or the bar on the terminal.
    """

    replaces_terminal = False

    def row(self, row: Values, time: float) -> None: ...

    def evaluation(self, values: Values, text: str, time: float) -> None: ...

    def event(self, name: str, value: Any, time: float) -> None: ...

    def describe(self, values: Values, time: float) -> None: ...

    def plan(self, values: Values, time: float) -> None: ...

    def reach(self, step: int, trained: int, time: float) -> None: ...

    def flush(self) -> None:
        """Force everything to disk that was written, so that no power cut takes it away."""

    def close(self, summary: Values, status: str, time: float) -> None: ...


UNTIMED_UPDATES = 6
"""Number of updates after the start and after each checkpoint that do not count for the speed, because they
are slower than usual.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunPlan:
    """The sizes of a run, which logs write before its first update.

    workers: number of devices.
    accumulation: micro-batches per update on each device.
    update_examples: examples per update over all workers.
    interval: number of examples trained on between two evaluations, 0 for a single evaluation at the end.
    eval_examples: number of examples of an evaluation.
    trained: number of examples that were trained on in this phase before the run started.
    step: number of updates that were made in this phase before the run started.
    sequence_length: largest number of token ids of a sequence in the data.
    steps: number of the last update of this phase.
    """

    workers: int
    accumulation: int
    update_examples: int
    interval: int
    eval_examples: int
    trained: int
    step: int
    sequence_length: int
    steps: int = 0


class Reporter(AbstractContextManager["Reporter"]):
    """Object that averages the records of ``log_every`` updates into a row, and sends the rows to the
    loggers.

    It also sends the events that MLPerf defines: "init" until ``begin`` is called, then blocks of training
    with evaluations between them. A run that only evaluates has no events except those of evaluations.
    Loggers count in steps. An update is ``steps_of_update`` steps, because some programs count micro-batches
    as steps.
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
        unfinished_row: UnfinishedRow | None = None,
    ) -> None:
        """Start the clock, and write the first event if the run trains.

        log_every: number of updates per row.
        devices: number of devices in the run.
        peak: peak speed of a device in operations per second, or None if it is not known.
        clock: returns the time in seconds since 1970.
        steps_of_update: number of steps that an update counts as in the logs.
        trains: False for a run that only evaluates.
        unfinished_row: the updates before a resume that belong to the first row.
        """
        self._loggers, self._log_every, self._clock = loggers, log_every, clock
        self._devices, self._peak = devices, peak
        self._steps_of_update, self._trains = steps_of_update, trains
        self._start = clock()
        self._newest: UpdateRecord | None = None  # the newest update that is in no row yet
        # Loss, metrics and times of the current row, which may have begun before a resume.
        self._means = RowMeans(unfinished_row)
        # Sums over the timed updates since the run was started or resumed.
        self._sums = dict.fromkeys(TIMED_FIELDS, 0.0)
        self._settling = UNTIMED_UPDATES
        self._summary = {"raw_train_time": 0.0}
        self._phase = ""
        self._between: float | None = None  # time since when neither a block nor an evaluation is under way
        if trains:
            self._phase = "init"
            self.event("init_start")

    def begin(self) -> None:
        """Write the events that mark the start of training."""
        self._change_phase("block", "run_start")

    def update(self, record: UpdateRecord) -> None:
        """Add the record of an update. If the update's number is a multiple of log_every, write a row."""
        if self._between is not None:
            self._start_block()
        self._newest = record
        counts_for_speed = self._settling <= 0 and record.is_timed
        timed = {name: float(getattr(record, name)) for name in TIMED_FIELDS} if counts_for_speed else {}
        for name, value in timed.items():
            self._sums[name] += value
        self._settling -= 1
        self._means.add(
            {"loss": record.loss, **record.metrics},
            step=record.step,
            epoch=record.epoch,
            learning_rate=record.learning_rate,
            times={name: getattr(record, name) for name in MEAN_FIELDS},
            timed=timed,
        )
        self._summary["final_loss"] = record.loss
        self._summary["raw_train_time"] += record.seconds
        if record.step % self._log_every == 0:
            self._write_row()

    def begin_evaluation(self, step: int = 0, trained: int = 0) -> None:
        """Write the event for the start of an evaluation.

        step: number of the update after which the model is evaluated.
        trained: number of examples that the model was trained on by then.
        """
        self._call_loggers("reach", step * self._steps_of_update, trained)
        self._between = None
        self._change_phase("eval")

    def evaluation(self, values: Values, text: str) -> None:
        """Write the results of an evaluation.

        If training continues, the next block begins now. Its event is written only with the next update,
        because no further update may come.
        values: the results by name.
        text: the results as one line for people.
        """
        self._call_loggers("evaluation", {**values, "step": values["step"] * self._steps_of_update}, text)
        self.event("eval_stop")
        self._phase, self._between = "", self._clock()

    def _start_block(self) -> None:
        """Write the event for the block of training that began when the last evaluation ended."""
        since, self._between, self._phase = self._between, None, "block"
        for logger in self._loggers:
            logger.event("block_start", True, since or self._clock())

    @property
    def unfinished_row(self) -> UnfinishedRow | None:
        """The updates since the last row, for a checkpoint. None if there are none."""
        return self._means.row

    def flush(self) -> None:
        """Force all logs to disk."""
        for logger in self._loggers:
            logger.flush()

    def saved(self, step: int) -> None:
        """Write the event for a saved checkpoint. The next updates do not count for the speed."""
        self._settling = UNTIMED_UPDATES
        self.event("checkpoint", step * self._steps_of_update)

    def compute_waited_share(self, least_seconds: float) -> float:
        """Return the share of the timed seconds in which the device waited for data.

        Returns 0 as long as fewer than ``least_seconds`` were timed.
        """
        seconds = self._sums["seconds"]
        return self._sums["data_wait"] / seconds if seconds >= least_seconds else 0.0

    def describe(self, **values: Any) -> None:
        """Write facts about the run (for example start point, weights, device) to the logs, by name."""
        self._call_loggers("describe", values)

    def plan(self, planned: RunPlan) -> None:
        """Send the sizes of the run to every log."""
        unit = self._steps_of_update
        told = asdict(planned) | {"step": planned.step * unit, "steps": planned.steps * unit}
        self._call_loggers("plan", told)

    def event(self, name: str, value: Any = True) -> None:
        """Send an event to every log."""
        self._call_loggers("event", name, value)

    def close(self, status: str = "success") -> Values:
        """Write the last row, close every log, and return the summary of the run.

        status: "success", "stopped" (the user stopped the run, to resume it later) or "aborted". MLPerf's log
        has no "stopped".
        """
        # A run that was killed after its last checkpoint and before this row has no new update when it is
        # resumed. If nothing is left to do, its row is written here. Otherwise the next resume needs it.
        if self._newest is not None or (status == "success" and self._means.row is not None):
            self._write_row()
        if self._phase:
            self.event(f"{self._phase}_stop")
        if self._trains:
            self.event("run_stop", "aborted" if status == "stopped" else status)
        summary = self._summary | {"e2e_train_time": self._clock() - self._start}
        summary |= {f"training_{name}": rate for name, rate in self._compute_rates(self._sums).items()}
        self._call_loggers("close", summary, status)
        self.flush()
        self._loggers = []
        return summary

    def __exit__(self, *failure: object) -> None:
        """Close the logs as "aborted" if the run ended with an error."""
        if self._loggers:
            self.close("aborted")

    def _write_row(self) -> None:
        """Send the means over the updates since the last row to the loggers.

        The means and rates include updates before a resume. If there is no update after it, the row lacks
        the fields that only the last update has, such as the memory.
        """
        row: Values = {}
        if self._newest is not None:
            row = {**_flatten_record(self._newest), "total_time": self._summary["raw_train_time"]}
        fields, timed = self._means.take()
        row |= fields
        row["step"] *= self._steps_of_update
        if timed:
            row["seconds_per_update"] = timed["seconds"] / timed["is_timed"]
            row |= self._compute_rates(timed)
        if "memory_gib" in row:
            self._summary["peak_memory_gib"] = row["memory_gib"]
        self._newest = None
        self._call_loggers("row", row)

    def _compute_rates(self, sums: Mapping[str, float]) -> Values:
        """Compute rates from sums over timed updates. Return them by name, or {} if no update was timed.

        Without a count of tokens there is only ``sequences_per_second``. The other rates are:

        tokens_per_second: tokens without padding.
        tflops: 10^12 operations per second on each device.
        peak_share: tflops divided by the device's peak speed.
        data_wait_share: share of the time in which the device waited for data.
        fill: share of the tokens in micro-batches that are not padding.
        """
        seconds, sequences, tokens, operations, slots, data_wait, _ = (sums[name] for name in TIMED_FIELDS)
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

    def _change_phase(self, phase: str, *between: str) -> None:
        """Write the events for the end of the current phase of the run and the start of the next.

        phase: name of the next phase.
        between: events to write after the end and before the start.
        """
        ended = [f"{self._phase}_stop"] if self._phase else []
        for name in (*ended, *between, f"{phase}_start"):
            self.event(name)
        self._phase = phase


def _flatten_record(record: UpdateRecord) -> Values:
    """Return the known fields and metrics of a record by name, without the counts that only serve to compute
    rates.
    """
    row = {name: value for name, value in asdict(record).items() if value is not None}
    del row["tokens"], row["operations"], row["slots"], row["is_timed"]
    metrics: Values = row.pop("metrics")
    return row | metrics
