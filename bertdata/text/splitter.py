"""Interface between the text stage and the sentence splitters."""

from collections.abc import Callable
from typing import Protocol


class Splitter(Protocol):
    """Protocol of a sentence splitter, with the method that the text stage calls."""

    def segment_lines(self, data: bytes, name: str = "text", *, keeps_indent: bool = False) -> bytes:
        r"""Split UTF-8 lines into sentences, one per line. An empty line stays an empty line.

        Only ``\n`` ends a line. Sentences are stripped. With keeps_indent, white space before the first
        sentence of a line stays.
        """
        ...


SplitterLoader = Callable[[], Splitter]
"""Function that returns the sentence splitter. Workers call it for each file, so it must be picklable, and
must be fast from the second call on.
"""
