"""Progress of a run on standard error: a bar with loss and speed on a terminal, plain lines elsewhere."""

from collections.abc import Sequence

from trainer.model.task import Columns
from trainer.report.log_records import EvaluationRecord, Logger, Values

_BAR_WIDTH = 10
_LEAST_WAIT = 0.01
"""The share of the time, waited for data, from which on it is shown."""

_TIME_WIDTH = 8
"""Columns of the bar's time left, h:mm:ss."""

_IN_A_LINE = (
    *("loss", "shown", "learning rate", "norm"),
    *("sequences", "tokens", "peak", "memory", "wait", "left"),
)
_BESIDE_THE_BAR = ("loss", "shown", "tokens", "peak", "sequences", "memory", "learning rate", "norm", "wait")
"""Names of the numbers, in the order in which they are shown."""


class Terminal(Logger):
    """A bar with the last row's numbers and the time left; results of evaluations appear above it.

    The bar shows as many of the numbers as the terminal has room for, in the order of their use. Plain lines
    where standard error is not a terminal, or bar is false.
    """

    def __init__(self, columns: Columns, steps: int, done: int, *, bar: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

        console = Console(stderr=True, soft_wrap=True, markup=False, highlight=False)
        parts = (MofNCompleteColumn(), BarColumn(_BAR_WIDTH), TimeRemainingColumn(), "{task.description}")
        self._bar = Progress(*parts, console=console, disable=not (bar and console.is_terminal))
        self._task = self._bar.add_task("", total=steps, completed=done)
        self._steps = steps
        self._shown = columns.shown
        self._bar.start()

    def row(self, row: Values, time: float) -> None:
        words = self._words(row)
        if self._bar.disable:
            pieces = [words[name] for name in _IN_A_LINE if name in words]
            self._bar.console.print("  ".join([f"step {row['step']}/{self._steps}", *pieces]))
            return
        pieces = [words[name] for name in _BESIDE_THE_BAR if name in words]
        self._bar.update(self._task, completed=row["step"], description=_fitting(pieces, self._room()))

    def evaluation(self, record: EvaluationRecord, time: float) -> None:
        self._bar.console.print(f"step {record.step}: evaluated {record.examples} examples: {record.text}")

    def close(self, summary: Values, status: str, time: float) -> None:
        self._bar.stop()
        speed = _speed({name.removeprefix("training_"): value for name, value in summary.items()})
        if "peak_memory_gib" in summary:
            speed["memory"] = _memory(summary["peak_memory_gib"])
        words = [f"{status} after {summary['e2e_train_time']:.1f} s", *speed.values()]
        self._bar.console.print(", ".join(words))

    def _words(self, row: Values) -> dict[str, str]:
        """The row's known numbers in words, by name."""
        words = {
            "loss": f"loss {row['loss']:.4f}",
            "shown": f"{self._shown.replace('_', ' ')} {row[self._shown]:.4f}",
            "learning rate": f"lr {row['learning_rate']:.2e}",
        } | _speed(row)
        if "memory_gib" in row:
            words["memory"] = _memory(row["memory_gib"])
        if "gradient_norm" in row:
            words["norm"] = f"gradient norm {row['gradient_norm']:.3f}"
        left = self._steps - row["step"]
        if left and "seconds_per_update" in row:
            words["left"] = f"{in_words(left * row['seconds_per_update'])} left"
        return words

    def _room(self) -> int:
        """The columns that are left for numbers."""
        counts = 2 * len(str(self._steps)) + 1
        return self._bar.console.width - counts - _BAR_WIDTH - _TIME_WIDTH - 3


def in_words(seconds: float) -> str:
    """A time in one or two units: ``45 s``, ``12 min``, ``3 h 5 min``, ``2 d 4 h``."""
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{seconds:.0f} s"
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h"


def _speed(rates: Values) -> dict[str, str]:
    """The known rates in words, by name."""
    words = dict[str, str]()
    if "sequences_per_second" in rates:
        words["sequences"] = f"{rates['sequences_per_second']:,.1f} sequences/s"
    if "tokens_per_second" in rates:
        words["tokens"] = f"{rates['tokens_per_second']:,.0f} tokens/s"
    if "peak_share" in rates:
        words["peak"] = f"{rates['peak_share']:.0%} of peak"
    if rates.get("data_wait_share", 0.0) >= _LEAST_WAIT:
        words["wait"] = f"waiting for data {rates['data_wait_share']:.0%}"
    return words


def _memory(gib: float) -> str:
    return f"{gib:.1f} GiB"


def _fitting(pieces: Sequence[str], room: int) -> str:
    """The first pieces that fit into so many columns, at least one."""
    shown = pieces[0]
    for piece in pieces[1:]:
        if len(shown) + 2 + len(piece) > room:
            break
        shown += f"  {piece}"
    return shown
