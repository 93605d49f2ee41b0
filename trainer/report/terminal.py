"""Progress of a run on standard error, in plain lines."""

from bertdata.io.terminal import say_error
from trainer.model.task import Columns
from trainer.report.reporter import Logger, Values

_LEAST_WAIT = 0.01
"""The share of the time, waited for data, from which on it is shown."""

_FORMS = {
    "loss": "loss {:.4f}",
    "shown": "{}",
    "learning_rate": "lr {:.2e}",
    "gradient_norm": "gradient norm {:.3f}",
    "sequences_per_second": "{:,.1f} sequences/s",
    "tokens_per_second": "{:,.0f} tokens/s",
    "peak_share": "{:.0%} of peak",
    "memory_gib": "{:.1f} GiB",
    "data_wait_share": "waiting for data {:.0%}",
    "left": "{} left",
}
"""The form of each of a row's numbers, in the order in which they are shown."""


class Terminal(Logger):
    """A line for each row with its numbers and the time left, one for each evaluation, and one at the end."""

    def __init__(self, columns: Columns, steps: int) -> None:
        self._steps = steps
        self._shown = columns.shown

    def row(self, row: Values, time: float) -> None:
        self.say("  ".join([f"step {row['step']}/{self._steps}", *self.words(row).values()]))

    def evaluation(self, values: Values, text: str, time: float) -> None:
        self.say(f"step {values['step']}: evaluated {values['examples']} examples: {text}")

    def close(self, summary: Values, status: str, time: float) -> None:
        known = {name.removeprefix("training_"): value for name, value in summary.items()}
        words = _words(known) | _words({"memory_gib": summary.get("peak_memory_gib")})
        self.say(", ".join([f"{status} after {summary['e2e_train_time']:.1f} s", *words.values()]))

    def say(self, line: str) -> None:
        """Print the line."""
        say_error(line)

    def words(self, row: Values) -> dict[str, str]:
        """The row's known numbers in words, by name, and "shown", the task's metric, and "left", the time."""
        shown = f"{self._shown.replace('_', ' ')} {row[self._shown]:.4f}"
        left = (self._steps - row["step"]) * row.get("seconds_per_update", 0.0)
        return _words({**row, "shown": shown, "left": in_words(left) if left else None})


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


def _words(values: Values) -> dict[str, str]:
    """The known numbers in words, by name."""
    known = {name: values[name] for name in _FORMS if values.get(name) is not None}
    if known.get("data_wait_share", 0.0) < _LEAST_WAIT:
        known.pop("data_wait_share", None)
    return {name: _FORMS[name].format(value) for name, value in known.items()}
