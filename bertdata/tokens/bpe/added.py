"""Added tokens in a text."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bertdata.tokens.bpe.pretokens import SPACE, WORD
from bertdata.tokens.bpe.settings import AddedToken

_STARTS_WITH_WORD, _ENDS_WITH_WORD = re.compile(f"[{WORD}]"), re.compile(rf"[{WORD}]\Z")
_SPACE_AT_START, _SPACE_AT_END = re.compile(f"[{SPACE}]*"), re.compile(f"[{SPACE}]")


class TextPart(NamedTuple):
    """A part of a text: ``text[start:stop]``. id: that of the added token, None for other text."""

    start: int
    stop: int
    id: int | None


class AddedTokenFinder:
    """Finds added tokens: of those that begin at the first place where any does, the longest."""

    def __init__(self, tokens: Sequence[AddedToken]) -> None:
        self._tokens = {token.content: token for token in tokens}
        longest_first = sorted(self._tokens, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    def split(self, text: str) -> Iterator[TextPart]:
        """The text's pieces, in order, none of them empty.

        A token of single words that stands in a word is passed over, with all that begins inside it.
        """
        done = 0
        for match in self._pattern.finditer(text):
            start, stop = match.span()
            token = self._tokens[match[0]]
            if token.single_word and (
                _ENDS_WITH_WORD.search(text[max(start - 1, 0) : start]) or _STARTS_WITH_WORD.match(text, stop)
            ):
                continue
            if token.lstrip:
                while start > done and _SPACE_AT_END.match(text, start - 1):
                    start -= 1
            if token.rstrip:
                stop = _end_of_space(text, stop)
            if done < start:
                yield TextPart(done, start, None)
            yield TextPart(start, stop, token.id)
            done = stop
        if done < len(text):
            yield TextPart(done, len(text), None)


def _end_of_space(text: str, start: int) -> int:
    found = _SPACE_AT_START.match(text, start)
    return found.end() if found else start
