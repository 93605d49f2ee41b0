"""Progress of a run on standard error: a bar with loss and speed on a terminal, plain lines elsewhere."""

from trainer.report.log_records import Logger, Values


class Terminal(Logger):
    """A bar with the last row's numbers and the time left; results of evaluations appear above it.

    Plain lines where standard error is not a terminal, or bar is false.
    """

    def __init__(self, steps: int, done: int, *, bar: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

        console = Console(stderr=True, soft_wrap=True, markup=False, highlight=False)
        columns = (MofNCompleteColumn(), BarColumn(20), TimeRemainingColumn(), "{task.description}")
        self._bar = Progress(*columns, console=console, disable=not (bar and console.is_terminal))
        self._task = self._bar.add_task("", total=steps, completed=done)
        self._steps = steps
        self._bar.start()

    def row(self, row: Values, time: float) -> None:
        words = "loss {loss:.4f}  mlm accuracy {mlm_accuracy:.4f}  learning rate {learning_rate:.3e}"
        words = words.format(**row) + _speed("  ", row.get("sequences_per_second"))
        self._bar.update(self._task, completed=row["step"], description=words)
        if self._bar.disable:
            self._bar.console.print(f"step {row['step']}/{self._steps}  {words}")

    def evaluation(self, results: Values, time: float) -> None:
        self._bar.console.print(
            "step {step}: evaluated {examples} examples: masked_lm_accuracy {masked_lm_accuracy:.5f} "
            "(always guessing the most frequent token: {most_frequent_accuracy:.5f}), "
            "masked_lm_loss {masked_lm_loss:.4f}, "
            "next_sentence_accuracy {next_sentence_accuracy:.5f}".format(**results)
        )

    def close(self, summary: Values, status: str, time: float) -> None:
        self._bar.stop()
        speed = _speed(", ", summary.get("training_sequences_per_second"))
        self._bar.console.print(f"{status} after {summary['e2e_train_time']:.1f} s{speed}")


def _speed(separator: str, speed: float | None) -> str:
    return "" if speed is None else f"{separator}{speed:,.1f} sequences/s"
