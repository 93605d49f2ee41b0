"""Progress display of ``train-vocab``, which first reads the text and then learns the vocabulary from its
words.
"""

from types import TracebackType

from bertdata.cli.common.step_progress import StepProgressDisplay
from bertdata.steps.progress import StepProgress
from bertdata.tokens.training.word_counts import WordCounts

_SMALL = 1 << 22
"""Size of a small text in bytes (4 MiB). It is read in seconds, so no lines are printed for it without a
terminal.
"""


class TrainingProgress:
    """Progress display of the training of a vocabulary.

    words: the word counts. They are set when the text has been read.
    """

    words: WordCounts

    def __init__(self, name: str, total_bytes: int) -> None:
        self._name = name
        self._total = total_bytes
        self._done = 0
        self._shown = StepProgressDisplay()

    def __enter__(self) -> "TrainingProgress":
        self._shown.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._shown.__exit__(kind, error, trace)

    def warn(self, warnings: list[str]) -> None:
        """Show the warnings about a finished vocabulary above the progress bar."""
        self._shown(self._make_report(warnings=tuple(warnings)))

    def on_read(self, read: int) -> None:
        """Add bytes that were read to the progress.

        Without a terminal, print a line for each tenth of a large text.
        """
        tenth = self._done * 10 // max(self._total, 1)
        self._done = min(self._done + read, self._total)
        line = ""
        if self._total > _SMALL and self._done * 10 // self._total > tenth:
            line = f"{self._name}: read {self._done} of {self._total} bytes"
        self._shown(StepProgress(stage="reading", done=self._done, total=self._total, finished=line))

    def on_counted(self, words: WordCounts) -> None:
        """Keep the word counts, and show from how many words the vocabulary is learned."""
        self.words = words
        line = f"{self._name}: learning from {words.words} words, {len(words.counts)} of them distinct"
        self._shown(self._make_report(finished=line if self._total > _SMALL else ""))

    def _make_report(self, *, finished: str = "", warnings: tuple[str, ...] = ()) -> StepProgress:
        """Return a progress report of the second stage, which learns the vocabulary from the word counts."""
        stage = f"learning from {len(self.words.counts)} distinct words"
        return StepProgress(
            stage=stage, done=0, total=1, unit="vocabularies", finished=finished, warnings=warnings
        )
