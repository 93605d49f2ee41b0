"""The words of a context, and the word of each of its characters."""

import re
from bisect import bisect_right
from dataclasses import dataclass

_WORD = re.compile("[^ \t\r\n\u202f]+")


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """A context split at blank, tab, CR, LF and U+202F (narrow no-break space), at nothing else.

    starts: the place of each word's first character in the text.
    """

    words: list[str]
    starts: list[int]
    length: int

    def word_at(self, place: int) -> int:
        """The word that holds the character, or the last one before it; -1 before the first word."""
        return bisect_right(self.starts, place) - 1

    def text(self, first: int, last: int) -> str:
        """The words from first to last with one blank between them."""
        return " ".join(self.words[first : last + 1])


def split_context(text: str) -> Context:
    """The words of a text, as run_squad.py splits it."""
    found = list(_WORD.finditer(text))
    return Context([match[0] for match in found], [match.start() for match in found], len(text))
