"""Finds added tokens (special tokens, for example) in a text."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bertdata.tokens.bpe.pretokens import SPACE, WORD
from bertdata.tokens.bpe.settings import AddedToken

_STARTS_WITH_WORD, _ENDS_WITH_WORD = re.compile(f"[{WORD}]"), re.compile(rf"[{WORD}]\Z")
_SPACE_AT_START, _SPACE_AT_END = re.compile(f"[{SPACE}]*"), re.compile(f"[{SPACE}]")


class TextPart(NamedTuple):
    """The part ``text[start:stop]`` of a text: an added token, or the text between two added tokens.

    id: id of the added token, or None if the part is not an added token.
    """

    start: int
    stop: int
    id: int | None


class AddedTokenFinder:
    """Finder of added tokens in a text, from left to right.

    If several tokens begin at the same position, the longest is taken.
    """

    def __init__(self, tokens: Sequence[AddedToken]) -> None:
        self._tokens = {token.content: token for token in tokens}
        longest_first = sorted(self._tokens, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    def split(self, text: str) -> Iterator[TextPart]:
        """Split a text into added tokens and the text between them, and yield these parts in order.

        No part is empty. A token with the flag ``single_word`` is not accepted inside a word. In this case,
        tokens that begin inside it are not found either.
        """
        done = 0
        # If the loop rejects a match, finditer still continues after it. Tokens that begin inside a rejected
        # token are therefore not found. Hugging Face's tokenizers does the same.
        for match in self._pattern.finditer(text):
            start, stop = match.span()
            token = self._tokens[match[0]]
            if token.single_word and (
                _ENDS_WITH_WORD.search(text[max(start - 1, 0) : start]) or _STARTS_WITH_WORD.match(text, stop)
            ):
                continue
            # A token with the flag lstrip or rstrip includes the white space on its left or right side.
            if token.lstrip:
                while start > done and _SPACE_AT_END.match(text, start - 1):
                    start -= 1
            if token.rstrip:
                stop = _find_end_of_space(text, stop)
            if done < start:
                yield TextPart(done, start, None)
            yield TextPart(start, stop, token.id)
            done = stop
        if done < len(text):
            yield TextPart(done, len(text), None)


def _find_end_of_space(text: str, start: int) -> int:
    """Return the end of the white space that begins at ``start``.

    The result is ``start`` if there is no white space.
    """
    found = _SPACE_AT_START.match(text, start)
    return found.end() if found else start
