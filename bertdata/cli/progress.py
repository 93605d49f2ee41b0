"""What a person sees of long work: a bar on a terminal, a plain line for each finished thing elsewhere."""

import sys
from types import TracebackType
from typing import Any


class Progress:
    """Progress of ``total`` units of work, shown on standard error."""

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

        amount: list[ProgressColumn] = (
            [DownloadColumn(), TransferSpeedColumn()] if self._unit == "bytes" else [MofNCompleteColumn()]
        )
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            *amount,
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task(self._label, total=self._total)
        self._bar.start()

    def advance(self, amount: int, line: str) -> None:
        """Count finished work; ``line`` says what was finished, empty: nothing worth a line."""
        self._done += amount
        if self._bar is not None:
            self._bar.advance(self._task, amount)
        elif line:
            print(line, file=sys.stderr, flush=True)

    def note(self, line: str) -> None:
        """Print a line that must not be lost, a warning for instance."""
        if self._bar is not None:
            self._bar.console.print(line, markup=False, highlight=False, soft_wrap=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
