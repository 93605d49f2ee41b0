"""Set of all word n-grams of evaluation texts, in which the n-grams of a document are looked up.

The C++ kernel in _native/text/ngram_set.h does the same.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.text.selection.words import fold_words


class SharedNgram(NamedTuple):
    """N-gram that a document has in common with an evaluation text.

    words: words of the n-gram, separated by blanks.
    source: number of the first source (evaluation file) that contains it.
    """

    words: str
    source: int


class Ngrams:
    """Set of word n-grams, that is, sequences of n words.

    The search compares the words themselves and not only their hashes, so it is exact.

    words: number of words in an n-gram.
    short_texts: number of added texts that have some words, but fewer than an n-gram. Such texts are never
        found in a document.
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
        """Add the n-grams of a text, and return the number of its words.

        A text with fewer words than an n-gram adds nothing.

        source: number of the text's source (evaluation file). It must not be smaller than in an earlier call.
        """
        number = self._add(text, source)
        self.short_texts += 0 < number < self._words
        return number

    def _add(self, text: str, source: int) -> int:
        """Add the n-grams of a text to the set, with the C++ kernel or in Python.

        Returns the number of its words.
        """
        if self._kernel is not None:
            number: int = self._kernel.add(_encode_utf8(text), source)
            return number
        words = fold_words(text)
        for ngram in self._make_ngrams(words):
            self._found.setdefault(ngram, source)
        return len(words)

    def find(self, text: bytes) -> SharedNgram | None:
        """Return the first n-gram of a document that is in the set. Returns None if there is none.

        text: the document in UTF-8.
        """
        if self._kernel is not None:
            found = self._kernel.find(text)
            return None if found is None else SharedNgram(*found)
        for ngram in self._make_ngrams(fold_words(text.decode())):
            if ngram in self._found:
                return SharedNgram(" ".join(ngram), self._found[ngram])
        return None

    def _make_ngrams(self, words: list[str]) -> Iterable[tuple[str, ...]]:
        """Return all sequences of n consecutive words."""
        if len(words) < self._words:
            return ()
        # For example, the trigrams of "a b c d" are zip("a b c d", "b c d", "c d"), which gives (a, b, c) and
        # (b, c, d).
        return zip(*(words[first:] for first in range(self._words)), strict=False)


def _encode_utf8(text: str) -> bytes:
    """Return the text in UTF-8, without lone surrogates."""
    return text.encode(errors="ignore")
