"""Text to pre-tokens: the parts that merges do not cross."""

import re
from collections.abc import Iterator
from functools import cache

from bertdata.tokens.bpe.settings import ByteBpe
from bertdata.unicode.tables import Ranges, library_classes


def _characters(*tables: Ranges) -> str:
    """The inside of a class of characters in a pattern."""
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for table in tables for first, last in table)


LETTER, NUMBER = _characters(library_classes().letter), _characters(library_classes().number)
NUMERIC = _characters(library_classes().number, library_classes().newer_number)
SPACE = _characters(library_classes().space)
WORD = _characters(library_classes().letter, library_classes().word_but_letter)
SPACE_CHARACTERS = "".join(
    chr(point) for first, last in library_classes().space for point in range(first, last + 1)
)

_SPACES = rf"[{SPACE}]+(?![^{SPACE}])|[{SPACE}]+"
_LATER = (
    r"'(?:[sS\u017f]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])"
    rf"|[^\r\n{LETTER}{NUMBER}]?[{LETTER}]+|[{NUMBER}]{{COUNT}}| ?[^{SPACE}{LETTER}{NUMBER}]+[\r\n]*"
    rf"|[{SPACE}]*[\r\n]+|{_SPACES}"
)
_PATTERNS = {
    "gpt2": rf"'(?:s|t|re|ve|m|ll|d)| ?[{LETTER}]+| ?[{NUMBER}]+| ?[^{SPACE}{LETTER}{NUMBER}]+|{_SPACES}",
    "llama3": _LATER.replace("{COUNT}", "{1,3}"),
    "qwen2": _LATER.replace("{COUNT}", ""),
}
_DIGITS = {"each": f"[{NUMERIC}]|[^{NUMERIC}]+", "runs": f"[{NUMERIC}]+|[^{NUMERIC}]+"}


Pretoken = tuple[str, list[int]]
"""The text of a pre-token, and the place of each of its characters."""


def split_pretokens(text: str, bpe: ByteBpe) -> Iterator[Pretoken]:
    """The pre-tokens of a piece without added tokens, in order.

    A blank that is put before a part (``bpe.prefix_space``) is at the place of the part's first character.
    """
    if bpe.digits is None:
        yield from _split_part(text, 0, bpe)
        return
    for match in _compiled(_DIGITS[bpe.digits]).finditer(text):
        yield from _split_part(match[0], match.start(), bpe)


def _split_part(part: str, start: int, bpe: ByteBpe) -> Iterator[Pretoken]:
    places = list(range(start, start + len(part)))
    if bpe.prefix_space and part and not part.startswith(" "):
        part, places = " " + part, [start, *places]
    for match in _compiled(_PATTERNS[bpe.pattern]).finditer(part):
        yield match[0], places[slice(*match.span())]


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
