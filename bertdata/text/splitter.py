"""Interface of the sentence splitters, as ``segment`` uses them."""

from collections.abc import Callable
from typing import Protocol


class Splitter(Protocol):
    """A sentence splitter."""

    def segment_lines(self, data: bytes, name: str = "text", *, keeps_indent: bool = False) -> bytes:
        r"""Split UTF-8 lines into sentences, one per line. An empty line stays an empty line.

        Only ``\n`` ends a line. White space around sentences is removed.

        name: name of the text, for errors.
        keeps_indent: keep white space before the first sentence of a line.
        """
        ...


class LanguageSplitterLoader(Protocol):
    """Function that returns the sentence splitter of a language, for records that say their language.

    Without a language it is called like a ``SplitterLoader``.
    """

    def __call__(self, language: str | None = None, /) -> Splitter: ...


SplitterLoader = Callable[[], Splitter]
"""Function that returns the sentence splitter.

It is sent to the workers, so it must be possible to pickle it. Workers call it for each file, so it must be
fast from the second call on.
"""
