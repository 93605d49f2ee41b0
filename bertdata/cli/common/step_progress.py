"""Progress display of a step such as ``create``: a bar for each stage of the step, or plain lines."""

from types import TracebackType

from bertdata.cli.common.folded_warnings import FoldedWarnings
from bertdata.cli.common.progress import Progress, ShardRate
from bertdata.steps.progress import StepProgress


class StepProgressDisplay:
    """Progress callback for a step such as ``create``, which shows each report and sums up similar warnings.

    tenths: True prints a line for each finished tenth of a stage if there is no terminal.
    """

    def __init__(self, *, tenths: bool = False) -> None:
        self._tenths = tenths
        self._last: StepProgress | None = None
        self._rate: ShardRate | None = None
        self._shown: Progress | None = None
        self._warnings = FoldedWarnings()

    def __enter__(self) -> "StepProgressDisplay":
        return self

    def __call__(self, now: StepProgress) -> None:
        """Show a progress report. A new bar begins when the name of the stage changes."""
        last = self._last
        if self._shown is None or last is None or last.stage != now.stage:
            self._end_stage()
            last = StepProgress(stage=now.stage, done=0, total=now.total)
            self._rate = ShardRate(now.all_shards) if now.all_shards else None
            self._shown = Progress(now.stage, now.total, unit=now.unit).__enter__()
        for warning in filter(self._warnings.is_first, now.warnings):
            self._shown.note(f"bertdata: warning: {warning}")
        self._shown.advance(
            now.done - last.done, self._format_line(last, now), self._format_detail(last, now)
        )
        self._last = now

    def _format_line(self, last: StepProgress, now: StepProgress) -> str:
        """Return the line to print for a report if there is no bar.

        An empty text means that nothing is printed.
        """
        if not self._tenths or not now.total:
            return now.finished
        is_new_tenth = now.done * 10 // now.total > last.done * 10 // last.total
        return f"{now.stage}: {now.done} of {now.total} {now.unit}" if is_new_tenth else ""

    def _format_detail(self, last: StepProgress, now: StepProgress) -> str | None:
        """Return the text next to the bar, which counts shards and tokens per second.

        Returns None if the stage writes no shards.
        """
        if self._rate is None:
            return None
        self._rate.count(now.shards - last.shards, now.tokens - last.tokens)
        return self._rate.text()

    def _end_stage(self) -> None:
        """Close the progress display of the present stage."""
        if self._shown is not None:
            self._shown.__exit__(None, None, None)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown is not None:
            for warning in self._warnings.summarise_others():
                self._shown.note(f"bertdata: warning: {warning}")
        self._end_stage()
