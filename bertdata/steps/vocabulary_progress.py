"""Progress of ``train-vocab``, which first reads the text and then learns the vocabulary from its
words.
"""

from bertdata.steps.progress import OnProgress, StepProgress
from bertdata.tokens.training.word_counts import WordCounts

_SMALL = 1 << 22
"""Size of a small text in bytes (4 MiB). It is read in seconds, so its reports contain no lines."""


class VocabularyProgress:
    """Progress of the training of a vocabulary, which is reported to a callback.

    words: the word counts. They are set when the text has been read.
    """

    words: WordCounts

    def __init__(self, name: str, total_bytes: int, progress: OnProgress) -> None:
        """Begin.

        name: name of the vocabulary, with which each line begins.
        total_bytes: size of the text.
        """
        self._name = name
        self._total = total_bytes
        self._done = 0
        self._progress = progress

    def warn(self, warnings: list[str]) -> None:
        """Report the warnings about a finished vocabulary."""
        self._progress(self._make_report(warnings=tuple(warnings)))

    def on_read(self, read: int) -> None:
        """Add bytes that were read to the progress.

        There is a line for each tenth of a large text.
        """
        tenth = self._done * 10 // max(self._total, 1)
        self._done = min(self._done + read, self._total)
        line = ""
        if self._total > _SMALL and self._done * 10 // self._total > tenth:
            line = f"{self._name}: read {self._done} of {self._total} bytes"
        self._progress(StepProgress(stage="reading", done=self._done, total=self._total, finished=line))

    def on_counted(self, words: WordCounts) -> None:
        """Keep the word counts, and report from how many words the vocabulary is learned."""
        self.words = words
        line = f"{self._name}: learning from {words.words} words, {len(words.counts)} of them distinct"
        self._progress(self._make_report(finished=line if self._total > _SMALL else ""))

    def _make_report(self, *, finished: str = "", warnings: tuple[str, ...] = ()) -> StepProgress:
        """Return a progress report of the second stage, which learns the vocabulary from the word counts."""
        stage = f"learning from {len(self.words.counts)} distinct words"
        return StepProgress(
            stage=stage, done=0, total=1, unit="vocabularies", finished=finished, warnings=warnings
        )
