"""Loss, metrics and times of the updates since the last row of the logs, which a checkpoint keeps.

A row is the mean over ``log_every`` updates. If a run is killed between two rows, the resumed run needs the
updates before the checkpoint for its first row. They are kept as sums, not as means, so that the row has the
same bits as in a run that was never killed: the resumed run goes on adding in the same order. Times are the
seconds of the updates alone, so the pause before the resume does not count.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

_LARGEST = 1e300
"""Largest number in a checkpoint's state (schemas/checkpoint.json)."""


MEAN_FIELDS = ("seconds", "data_wait", "sequences")
"""Fields of UpdateRecord whose means over the updates are in a row."""

TIMED_FIELDS = ("seconds", "sequences", "tokens", "operations", "slots", "data_wait", "is_timed")
"""Fields of UpdateRecord that are summed over timed updates, to compute rates such as tokens per second."""

_UPDATES = "updates"


@dataclass(frozen=True, kw_only=True, slots=True)
class UnfinishedRow:
    """The updates since the last row.

    updates: number of updates, at least 1.
    sums: for the loss and each metric, the sum over the updates, by name.
    step: number of the last of these updates.
    epoch, learning_rate, step_loss: epoch, learning rate and loss of the last of these updates.
    times: number of updates whose times are known (``updates``), and sums of MEAN_FIELDS over these updates.
        Updates of a checkpoint of an earlier version have no known times. {} without any known time.
    timed: sums of TIMED_FIELDS over the timed updates, or {} without any.
    """

    updates: int
    sums: Mapping[str, float]
    step: int
    epoch: int
    learning_rate: float
    step_loss: float
    times: Mapping[str, float] = field(default_factory=dict)
    timed: Mapping[str, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the row for a checkpoint's state, which has the step itself.

        Return {} if a number is infinite, not a number or too large for the state. The row of a resumed run
        then begins with its first update.
        """
        numbers = (
            *(*self.sums.values(), self.learning_rate, self.step_loss),
            *(*self.times.values(), *self.timed.values()),
        )
        if not all(abs(number) <= _LARGEST for number in numbers):  # false for NaN too
            return {}
        return {
            "updates": self.updates,
            "sums": dict(self.sums),
            "epoch": self.epoch,
            "learning_rate": self.learning_rate,
            "step_loss": self.step_loss,
            "times": dict(self.times),
            "timed": dict(self.timed),
        }


def read_unfinished_row(
    values: Mapping[str, Any], step: int, metrics: Collection[str]
) -> UnfinishedRow | None:
    """Return the row in a checkpoint's state.

    Return None if there is none, as in checkpoints of earlier versions and after a whole row, or if its
    metrics are not those of the task.

    values: the state's ``unfinished_row``, which was checked against schemas/checkpoint.json.
    step: number of the checkpoint's update.
    metrics: names of the task's metrics.
    """
    if not values or set(values["sums"]) != {"loss", *metrics}:
        return None
    return UnfinishedRow(
        updates=int(values["updates"]),
        sums={name: float(total) for name, total in values["sums"].items()},
        step=step,
        epoch=int(values["epoch"]),
        learning_rate=float(values["learning_rate"]),
        step_loss=float(values["step_loss"]),
        times={name: float(total) for name, total in values.get("times", {}).items()},
        timed={name: float(total) for name, total in values.get("timed", {}).items()},
    )


class RowMeans:
    """Object that adds up loss, metrics and times of updates until a row is taken.

    row: the updates that were added since the last row, or None.
    """

    def __init__(self, row: UnfinishedRow | None = None) -> None:
        self.row = row

    def add(
        self,
        values: Mapping[str, float],
        *,
        step: int,
        epoch: int,
        learning_rate: float,
        times: Mapping[str, float],
        timed: Mapping[str, float],
    ) -> None:
        """Add an update.

        values: loss and metrics of the update, by name.
        times: the update's values of MEAN_FIELDS.
        timed: the update's values of TIMED_FIELDS, or {} if it does not count for the speed.
        """
        before = self.row
        self.row = UnfinishedRow(
            updates=1 if before is None else before.updates + 1,
            sums=_add({} if before is None else before.sums, values),
            step=step,
            epoch=epoch,
            learning_rate=learning_rate,
            step_loss=values["loss"],
            times=_add({} if before is None else before.times, {_UPDATES: 1.0, **times}),
            timed=_add({} if before is None else before.timed, timed),
        )

    def take(self) -> tuple[dict[str, Any], Mapping[str, float]]:
        """Return the fields of the row by name, and the sums over its timed updates. Begin the next row.

        The row must have an update. Loss, metrics and MEAN_FIELDS are means, all other fields are those of
        the last update. MEAN_FIELDS are left out if no time is known.
        """
        row, self.row = self.row, None
        assert row is not None
        means = {name: total / row.updates for name, total in row.sums.items()}
        if row.times:
            means |= {name: row.times[name] / row.times[_UPDATES] for name in MEAN_FIELDS}
        fields = {
            "step": row.step,
            "epoch": row.epoch,
            "learning_rate": row.learning_rate,
            **means,
            "step_loss": row.step_loss,
        }
        return fields, row.timed


def _add(sums: Mapping[str, float], values: Mapping[str, float]) -> dict[str, float]:
    """Return the sums with the values added. If either is empty, return the other."""
    if not sums or not values:
        return dict(sums or values)
    return {name: sums[name] + value for name, value in values.items()}
