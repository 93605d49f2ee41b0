"""What a person sees of a run: a bar with loss and speed on a terminal, plain lines elsewhere."""

import sys
from typing import Any

from trainer.rows import EvaluationRecord, Row, Sink, Summary


def make_terminal(steps: int, done: int, *, bar: bool = True) -> Sink:
    """The bar where standard error is a terminal and a bar is wanted, else lines."""
    return Bar(steps, done) if bar and sys.stderr.isatty() else Lines(steps)


def _speed(per_second: float | None) -> str:
    return "" if per_second is None else f"{per_second:,.1f} sequences/s"


def _numbers(row: Row) -> str:
    means = row.means
    parts = [f"loss {means.loss:.4f}", f"mlm accuracy {means.mlm_accuracy:.4f}"]
    parts += [f"learning rate {means.learning_rate:.3e}", _speed(row.timing.sequences_per_second)]
    return "  ".join(part for part in parts if part)


def _evaluation(record: EvaluationRecord) -> str:
    return (
        f"step {record.step}: evaluated {record.examples} examples: "
        f"masked_lm_accuracy {record.masked_lm_accuracy:.5f} "
        f"(always guessing the most frequent token: {record.most_frequent_accuracy:.5f}), "
        f"masked_lm_loss {record.masked_lm_loss:.4f}, "
        f"next_sentence_accuracy {record.next_sentence_accuracy:.5f}"
    )


def _end(summary: Summary) -> str:
    loss = "" if summary.final_loss is None else f", final loss {summary.final_loss:.4f}"
    speed = _speed(summary.timing.sequences_per_second)
    return f"{summary.status} after {summary.e2e_seconds:.1f} s{loss}{speed and ', ' + speed}"


class Lines(Sink):
    """One line a row on standard error."""

    def __init__(self, steps: int) -> None:
        self._steps = steps

    def row(self, row: Row) -> None:
        self._print(f"step {row.means.step}/{self._steps}  {_numbers(row)}")

    def evaluation(self, record: EvaluationRecord, time: float) -> None:
        self._print(_evaluation(record))

    def close(self, summary: Summary) -> None:
        self._print(_end(summary))

    def _print(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)


class Bar(Lines):
    """A bar with the last row's numbers and the time left; results of evaluations scroll above it."""

    def __init__(self, steps: int, done: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        super().__init__(steps)
        self._bar: Any = Progress(
            MofNCompleteColumn(),
            BarColumn(bar_width=20),
            TimeRemainingColumn(),
            TextColumn("{task.description}"),
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task("", total=steps, completed=done)
        self._bar.start()

    def row(self, row: Row) -> None:
        self._bar.update(self._task, completed=row.means.step, description=_numbers(row))

    def close(self, summary: Summary) -> None:
        self._bar.stop()
        print(_end(summary), file=sys.stderr, flush=True)

    def _print(self, line: str) -> None:
        self._bar.console.print(line, markup=False, highlight=False, soft_wrap=True)
