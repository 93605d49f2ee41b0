"""Progress of a run on standard error: a bar with loss and speed on a terminal, plain lines elsewhere."""

from trainer.report.columns import Columns
from trainer.report.log_records import EvaluationRecord, Logger, Values


class Terminal(Logger):
    """A bar with the last row's numbers and the time left; results of evaluations appear above it.

    Plain lines where standard error is not a terminal, or bar is false.
    """

    def __init__(self, columns: Columns, steps: int, done: int, *, bar: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

        console = Console(stderr=True, soft_wrap=True, markup=False, highlight=False)
        parts = (MofNCompleteColumn(), BarColumn(20), TimeRemainingColumn(), "{task.description}")
        self._bar = Progress(*parts, console=console, disable=not (bar and console.is_terminal))
        self._task = self._bar.add_task("", total=steps, completed=done)
        self._steps = steps
        self._shown = columns.shown
        self._bar.start()

    def row(self, row: Values, time: float) -> None:
        shown = f"{self._shown.replace('_', ' ')} {row[self._shown]:.4f}"
        words = "loss {loss:.4f}  {shown}  learning rate {learning_rate:.3e}"
        words = words.format(shown=shown, **row) + _speed("  ", row.get("sequences_per_second"))
        self._bar.update(self._task, completed=row["step"], description=words)
        if self._bar.disable:
            self._bar.console.print(f"step {row['step']}/{self._steps}  {words}")

    def evaluation(self, record: EvaluationRecord, time: float) -> None:
        self._bar.console.print(f"step {record.step}: evaluated {record.examples} examples: {record.text}")

    def close(self, summary: Values, status: str, time: float) -> None:
        self._bar.stop()
        speed = _speed(", ", summary.get("training_sequences_per_second"))
        self._bar.console.print(f"{status} after {summary['e2e_train_time']:.1f} s{speed}")


def _speed(separator: str, speed: float | None) -> str:
    return "" if speed is None else f"{separator}{speed:,.1f} sequences/s"
