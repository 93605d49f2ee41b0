"""Interface between the text stage and the sentence splitters."""

from collections.abc import Callable
from typing import Protocol


class Splitter(Protocol):
    """Sentence splitter of one language."""

    def segment_lines(self, data: bytes, name: str = "text", *, keeps_indent: bool = False) -> bytes:
        r"""Return the sentences of UTF-8 lines, one per line. An empty line stays an empty line.

        Only ``\n`` ends a line. Sentences are stripped. With keeps_indent, white space before the first
        sentence of a line stays.
        """
        ...


SplitterLoader = Callable[[], Splitter]
"""Function that returns the splitter. It must be picklable, and is called in the worker for each file, so it
must be fast from the second call on.
"""
