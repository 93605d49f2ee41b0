"""The n-grams of words of some texts, and the first of them that another text holds.

Twin of _native/text/ngram_set.h.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.text.selection.words import folded_words


class SharedNgram(NamedTuple):
    """An n-gram, its words separated by blanks, and the number of the first source that holds it."""

    words: str
    source: int


class Ngrams:
    """The n-grams of so many words of the texts that were added. A search never errs: words are compared.

    short_texts: how many texts with words were added that are shorter than an n-gram, and so are never found.
    """

    def __init__(self, words: int, *, engine: Engine | None = None) -> None:
        self.short_texts = 0
        self._words = words
        self._found: dict[tuple[str, ...], int] = {}
        self._kernel: Any = None
        if use_native(engine or default_engine()):
            self._kernel = kernels.NgramSet(words)

    def __len__(self) -> int:
        return len(self._found if self._kernel is None else self._kernel)

    def add(self, text: str, source: int) -> int:
        """Add the n-grams of a text, sources in the order of their numbers. Returns the number of its words.

        A text of fewer words than an n-gram adds none.
        """
        number = self._add(text, source)
        self.short_texts += 0 < number < self._words
        return number

    def _add(self, text: str, source: int) -> int:
        if self._kernel is not None:
            number: int = self._kernel.add(_utf8(text), source)
            return number
        words = folded_words(text)
        for ngram in self._ngrams(words):
            self._found.setdefault(ngram, source)
        return len(words)

    def find(self, text: bytes) -> SharedNgram | None:
        """The first n-gram of a UTF-8 text that is among these."""
        if self._kernel is not None:
            found = self._kernel.find(text)
            return None if found is None else SharedNgram(*found)
        for ngram in self._ngrams(folded_words(text.decode())):
            if ngram in self._found:
                return SharedNgram(" ".join(ngram), self._found[ngram])
        return None

    def _ngrams(self, words: list[str]) -> Iterable[tuple[str, ...]]:
        if len(words) < self._words:
            return ()
        return zip(*(words[first:] for first in range(self._words)), strict=False)


def _utf8(text: str) -> bytes:
    """The text in UTF-8, halves of surrogate pairs left out."""
    return text.encode(errors="ignore")
