"""A progress bar in a notebook, with loss and speed."""

from bertdata.io.notebook import NotebookBar
from trainer.logs.logs import Terminal
from trainer.logs.reporter import Values
from trainer.tasks.task import Columns


class NotebookProgress(Terminal):
    """Progress bar in the output of a notebook's cell.

    It shows the numbers of the newest logged row. Results of evaluations are lines below the bar.
    """

    def __init__(self, columns: Columns, steps: int, steps_of_update: int = 1) -> None:
        super().__init__(columns, steps, steps_of_update)
        self._bar = NotebookBar()

    def row(self, row: Values, time: float) -> None:
        numbers = "  ".join(self.format_numbers(row).values())
        self._bar.show(row["step"] / self._steps, f"step {row['step']}/{self._steps}  {numbers}")

    def say(self, line: str) -> None:
        self._bar.add_line(line)
