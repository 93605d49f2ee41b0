"""A progress bar on a terminal, with loss and speed."""

from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

from trainer.logs.logs import Terminal
from trainer.logs.reporter import Values
from trainer.tasks.task import Columns

_BAR_WIDTH = 10
_TIME_WIDTH = 8
"""Width of the remaining time, which is written as h:mm:ss."""

_SHOWN_NUMBERS = (
    *("loss", "shown", "tokens_per_second", "peak_share", "sequences_per_second"),
    *("memory_gib", "learning_rate", "gradient_norm", "data_wait_share"),
)
"""Numbers of a row that are shown next to the bar, the most important first. On a narrow terminal the last
numbers are left out.
"""


class ProgressBar(Terminal):
    """A progress bar with the numbers of the newest row and the remaining time. Evaluations are printed above
    it.

    It shows as many numbers as fit into the terminal's width.
    done: number of steps that were made before this run started.
    """

    def __init__(self, columns: Columns, steps: int, done: int, steps_of_update: int = 1) -> None:
        super().__init__(columns, steps, steps_of_update)
        console = Console(stderr=True, soft_wrap=True, markup=False, highlight=False)
        parts = (MofNCompleteColumn(), BarColumn(_BAR_WIDTH), TimeRemainingColumn(), "{task.description}")
        self._bar = Progress(*parts, console=console)
        self._task = self._bar.add_task("", total=steps, completed=done)
        self._bar.start()

    def row(self, row: Values, time: float) -> None:
        words = self.format_numbers(row)
        pieces = [words[name] for name in _SHOWN_NUMBERS if name in words]
        self._bar.update(
            self._task,
            completed=row["step"],
            description=_join_pieces_that_fit(pieces, self._count_free_columns()),
        )

    def close(self, summary: Values, status: str, time: float) -> None:
        self._bar.stop()
        super().close(summary, status, time)

    def say(self, line: str) -> None:
        self._bar.console.print(line)

    def _count_free_columns(self) -> int:
        """Return the number of terminal columns that are free for numbers next to the bar."""
        counts = 2 * len(str(self._steps)) + 1
        return self._bar.console.width - counts - _BAR_WIDTH - _TIME_WIDTH - 3


def _join_pieces_that_fit(pieces: Sequence[str], room: int) -> str:
    """Join the first pieces that fit into ``room`` columns together. The first piece is always included."""
    shown = pieces[0]
    for piece in pieces[1:]:
        if len(shown) + 2 + len(piece) > room:
            break
        shown += f"  {piece}"
    return shown
