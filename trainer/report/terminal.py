"""Progress of a run on standard error, in plain lines."""

from bertdata.io.terminal import say_error
from trainer.model.task import Columns
from trainer.report.reporter import EvaluationRecord, Logger, Values

_LEAST_WAIT = 0.01
"""The share of the time, waited for data, from which on it is shown."""

_IN_A_LINE = (
    *("loss", "shown", "learning rate", "norm"),
    *("sequences", "tokens", "peak", "memory", "wait", "left"),
)
"""Names of a row's numbers, in the order in which they are shown."""


class Terminal(Logger):
    """A line for each row with its numbers and the time left, one for each evaluation, and one at the end."""

    def __init__(self, columns: Columns, steps: int) -> None:
        self._steps = steps
        self._shown = columns.shown

    def row(self, row: Values, time: float) -> None:
        words = self.words(row)
        pieces = [words[name] for name in _IN_A_LINE if name in words]
        self.say("  ".join([f"step {row['step']}/{self._steps}", *pieces]))

    def evaluation(self, record: EvaluationRecord, time: float) -> None:
        self.say(f"step {record.step}: evaluated {record.examples} examples: {record.text}")

    def close(self, summary: Values, status: str, time: float) -> None:
        speed = _speed({name.removeprefix("training_"): value for name, value in summary.items()})
        if "peak_memory_gib" in summary:
            speed["memory"] = _memory(summary["peak_memory_gib"])
        self.say(", ".join([f"{status} after {summary['e2e_train_time']:.1f} s", *speed.values()]))

    def say(self, line: str) -> None:
        """Print the line."""
        say_error(line)

    def words(self, row: Values) -> dict[str, str]:
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
