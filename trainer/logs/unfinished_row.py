"""Loss and metrics of the updates since the last row of the logs, which a checkpoint keeps.

A row is the mean over ``log_every`` updates. If a run is killed between two rows, the resumed run needs the
updates before the checkpoint for its first row. They are kept as sums, not as means, so that the row has the
same bits as in a run that was never killed: the resumed run goes on adding in the same order.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

_LARGEST = 1e300
"""Largest number in a checkpoint's state (schemas/checkpoint.json)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UnfinishedRow:
    """The updates since the last row.

    updates: number of updates, at least 1.
    sums: for the loss and each metric, the sum over the updates, by name.
    step: number of the last of these updates.
    epoch, learning_rate, step_loss: epoch, learning rate and loss of the last of these updates.
    """

    updates: int
    sums: Mapping[str, float]
    step: int
    epoch: int
    learning_rate: float
    step_loss: float

    def as_json(self) -> dict[str, Any]:
        """Return the row for a checkpoint's state, which has the step itself.

        Return {} if a number is infinite, not a number or too large for the state. The row of a resumed run
        then begins with its first update.
        """
        numbers = (*self.sums.values(), self.learning_rate, self.step_loss)
        if not all(abs(number) <= _LARGEST for number in numbers):  # false for NaN too
            return {}
        return {
            "updates": self.updates,
            "sums": dict(self.sums),
            "epoch": self.epoch,
            "learning_rate": self.learning_rate,
            "step_loss": self.step_loss,
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
    )


class RowMeans:
    """Object that adds up loss and metrics of updates until a row is taken.

    row: the updates that were added since the last row, or None.
    """

    def __init__(self, row: UnfinishedRow | None = None) -> None:
        self.row = row

    def add(self, values: Mapping[str, float], step: int, epoch: int, learning_rate: float) -> None:
        """Add an update.

        values: loss and metrics of the update, by name.
        """
        before = self.row
        sums = dict(values)
        if before is not None:
            sums = {name: before.sums[name] + value for name, value in values.items()}
        self.row = UnfinishedRow(
            updates=1 if before is None else before.updates + 1,
            sums=sums,
            step=step,
            epoch=epoch,
            learning_rate=learning_rate,
            step_loss=values["loss"],
        )

    def take(self) -> dict[str, Any]:
        """Return the fields of the row by name, and begin the next row.

        The row must have an update. Loss and metrics are means, all other fields are those of the last
        update.
        """
        row, self.row = self.row, None
        assert row is not None
        means = {name: total / row.updates for name, total in row.sums.items()}
        return {
            "step": row.step,
            "epoch": row.epoch,
            "learning_rate": row.learning_rate,
            **means,
            "step_loss": row.step_loss,
        }
