"""The interface of sentence splitters to the text stage."""

from collections.abc import Callable
from typing import Protocol


class Splitter(Protocol):
    """Decides where sentences end."""

    def segment_lines(self, data: bytes, name: str = "text", *, keeps_indent: bool = False) -> bytes:
        r"""The sentences of UTF-8 lines, one a line. An empty line stays an empty line.

        Only ``\n`` ends a line. Sentences are stripped; with keeps_indent the white space before a
        line's first sentence stays.
        """
        ...


SplitterLoader = Callable[[], Splitter]
"""Called for each file in the process that works on it: picklable, and quick from the second call on."""
