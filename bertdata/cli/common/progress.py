"""Progress display for work that takes long: a bar on a terminal, otherwise plain lines."""

import sys
import time
from types import TracebackType
from typing import Any

from bertdata.io.terminal import escape_unprintable, say_error


class Progress:
    """Context manager that shows the progress of ``total`` units of work on standard error."""

    def __init__(self, label: str, total: int, *, unit: str) -> None:
        self._label = label
        self._total = total
        self._unit = unit
        self._done = 0
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> "Progress":
        if sys.stderr.isatty():
            self._start_bar()
        return self

    def _start_bar(self) -> None:
        """Show the progress bar.

        The package rich is imported only here, because it is not needed without a terminal.
        """
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            ProgressColumn,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )
        from rich.progress import Progress as Bar

        amounts: dict[str, list[ProgressColumn]] = {
            "bytes": [DownloadColumn(), TransferSpeedColumn()],
            # the bar of the stage "shards" shows no unit, because the text next to it counts the shards
            "shards": [],
        }
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            *amounts.get(self._unit, [MofNCompleteColumn()]),
            TextColumn("{task.fields[detail]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task(self._label, total=self._total, detail="")
        self._bar.start()

    def advance(self, amount: int, line: str, detail: str | None = None) -> None:
        """Add finished work to the progress.

        amount: number of units that were finished.
        line: text that says what was finished. It is printed if there is no bar. An empty text prints
            nothing.
        detail: new text next to the bar. None keeps the present text.
        """
        self._done += amount
        if self._bar is not None:
            self._bar.advance(self._task, amount)
            if detail is not None:
                self._bar.update(self._task, detail=escape_unprintable(detail))
        elif line:
            say_error(line)

    def complete(self) -> None:
        """Fill the bar completely, even if not all work was counted."""
        if self._bar is not None:
            self._bar.update(self._task, completed=self._total)

    def note(self, line: str) -> None:
        """Print a line above the bar, for example a warning."""
        if self._bar is not None:
            self._bar.console.print(escape_unprintable(line), markup=False, highlight=False, soft_wrap=True)
        else:
            say_error(line)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


class ShardRate:
    """Counter of finished shards, and of the number of tokens that are written per second."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._tokens = 0
        self._start = time.monotonic()

    def count(self, shards: int, tokens: int) -> None:
        """Count finished shards.

        tokens: number of tokens in those shards that this run wrote. Shards that an earlier run wrote do not
            count.
        """
        self._done += shards
        self._tokens += tokens

    def text(self) -> str:
        """Return a text such as ``3/8 shards, 1,234,567 tokens/s``."""
        speed = self._tokens / max(time.monotonic() - self._start, 1e-9)
        return f"{self._done}/{self._total} shards, {speed:,.0f} tokens/s"
