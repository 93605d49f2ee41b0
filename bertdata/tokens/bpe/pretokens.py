"""Splits text into pre-tokens. BPE merges never cross the border of a pre-token."""

import re
from collections.abc import Iterator
from functools import cache

from bertdata.tokens.bpe.settings import ByteBpe
from bertdata.unicode.tables import Ranges, load_library_classes


def _format_ranges(*tables: Ranges) -> str:
    """Return the ranges in the form that a character class of a regular expression needs."""
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for table in tables for first, last in table)


LETTER, NUMBER = _format_ranges(load_library_classes().letter), _format_ranges(load_library_classes().number)
NUMERIC = _format_ranges(load_library_classes().number, load_library_classes().newer_number)
SPACE = _format_ranges(load_library_classes().space)
WORD = _format_ranges(load_library_classes().letter, load_library_classes().word_but_letter)
SPACE_CHARACTERS = "".join(
    chr(point) for first, last in load_library_classes().space for point in range(first, last + 1)
)

# ``\s+(?!\S)|\s+`` of the original patterns, written with the table of white space in Hugging Face's
# tokenizers.
_SPACES = rf"[{SPACE}]+(?![^{SPACE}])|[{SPACE}]+"
# Llama 3's and Qwen 2's patterns differ only in COUNT: up to three digits together, or each digit alone.
# U+017F is the long s. (?i:...) in the original patterns matches it as an s.
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
"""The text of a pre-token, and for each of its characters the index in the text that was split."""


def split_pretokens(text: str, bpe: ByteBpe) -> Iterator[Pretoken]:
    """Yield the pre-tokens of a text that contains no added tokens.

    If ``bpe.prefix_space`` puts a blank before the text, the blank has the index of the first character.
    """
    if bpe.digits is None:
        yield from _split_part(text, 0, bpe)
        return
    for match in _compile_pattern(_DIGITS[bpe.digits]).finditer(text):
        yield from _split_part(match[0], match.start(), bpe)


def _split_part(part: str, start: int, bpe: ByteBpe) -> Iterator[Pretoken]:
    """Yield the pre-tokens of a part of the text. start: the part's index in the text."""
    places = list(range(start, start + len(part)))
    if bpe.prefix_space and part and not part.startswith(" "):
        part, places = " " + part, [start, *places]
    for match in _compile_pattern(_PATTERNS[bpe.pattern]).finditer(part):
        yield match[0], places[slice(*match.span())]


@cache
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern on first use: the patterns contain large character classes."""
    return re.compile(pattern)
