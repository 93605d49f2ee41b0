"""What a person sees of a run: a bar with loss and speed on a terminal, plain lines elsewhere."""

import sys
from typing import Any

from trainer.rows import EvaluationRecord, Row, Sink, Summary, Timing


def make_terminal(steps: int, done: int, *, bar: bool = True) -> Sink:
    """The bar where standard error is a terminal and a bar is wanted, else lines."""
    return Bar(steps, done) if bar and sys.stderr.isatty() else Lines(steps)


def _speed(separator: str, timing: Timing) -> str:
    speed = timing.sequences_per_second
    return "" if speed is None else f"{separator}{speed:,.1f} sequences/s"


def _numbers(row: Row) -> str:
    means = row.means
    words = f"loss {means.loss:.4f}  mlm accuracy {means.mlm_accuracy:.4f}"
    return f"{words}  learning rate {means.learning_rate:.3e}" + _speed("  ", row.timing)


def _evaluation(record: EvaluationRecord) -> str:
    return (
        f"step {record.step}: evaluated {record.examples} examples: "
        f"masked_lm_accuracy {record.masked_lm_accuracy:.5f} "
        f"(always guessing the most frequent token: {record.most_frequent_accuracy:.5f}), "
        f"masked_lm_loss {record.masked_lm_loss:.4f}, "
        f"next_sentence_accuracy {record.next_sentence_accuracy:.5f}"
    )


class Lines(Sink):
    """One line a row on standard error."""

    def __init__(self, steps: int) -> None:
        self._steps = steps

    def row(self, row: Row) -> None:
        self._print(f"step {row.means.step}/{self._steps}  {_numbers(row)}")

    def evaluation(self, record: EvaluationRecord, time: float) -> None:
        self._print(_evaluation(record))

    def close(self, summary: Summary) -> None:
        loss = "" if summary.final_loss is None else f", final loss {summary.final_loss:.4f}"
        speed = _speed(", ", summary.timing)
        self._print(f"{summary.status} after {summary.e2e_seconds:.1f} s{loss}{speed}")

    def _print(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)


class Bar(Lines):
    """A bar with the last row's numbers and the time left; results of evaluations scroll above it."""

    def __init__(self, steps: int, done: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        numbers, time_left = TextColumn("{task.description}"), TimeRemainingColumn()
        columns = (MofNCompleteColumn(), BarColumn(bar_width=20), time_left, numbers)
        self._bar: Any = Progress(*columns, console=Console(stderr=True))
        self._task = self._bar.add_task("", total=steps, completed=done)
        self._bar.start()

    def row(self, row: Row) -> None:
        self._bar.update(self._task, completed=row.means.step, description=_numbers(row))

    def close(self, summary: Summary) -> None:
        self._bar.stop()
        super().close(summary)

    def _print(self, line: str) -> None:
        self._bar.console.print(line, markup=False, highlight=False, soft_wrap=True)
