"""Splits text into pre-tokens, the pieces of text in which BPE merges characters to tokens.

No token reaches across the border of a pre-token.
"""

import re
from collections.abc import Iterator
from functools import cache

from bertdata.tokens.bpe.settings import ByteBpe
from bertdata.unicode.tables import Ranges, load_library_classes


def _format_ranges(*tables: Ranges) -> str:
    """Format tables of code points for use between the brackets of a regular expression, as in ``[A-Z]``."""
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for table in tables for first, last in table)


LETTER, NUMBER = _format_ranges(load_library_classes().letter), _format_ranges(load_library_classes().number)
NUMERIC = _format_ranges(load_library_classes().number, load_library_classes().newer_number)
SPACE = _format_ranges(load_library_classes().space)
WORD = _format_ranges(load_library_classes().letter, load_library_classes().word_but_letter)
SPACE_CHARACTERS = "".join(
    chr(point) for first, last in load_library_classes().space for point in range(first, last + 1)
)

# This is the end ``\s+(?!\S)|\s+`` of the original patterns. ``\s`` is replaced by the characters that
# Hugging Face's tokenizers treats as white space.
_SPACES = rf"[{SPACE}]+(?![^{SPACE}])|[{SPACE}]+"
# The patterns of Llama 3 and Qwen 2 differ only in COUNT, the number of digits in a pre-token: up to three
# for Llama 3, exactly one for Qwen 2. U+017F is the long s, which (?i:...) in the original patterns matches
# as an s.
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
"""A pre-token: its text, and for each character of it the index of the character in the text that was split.
"""


def split_pretokens(text: str, bpe: ByteBpe) -> Iterator[Pretoken]:
    """Split a text without added tokens into its pre-tokens, and yield them in order.

    If the setting ``bpe.prefix_space`` inserts a blank before the text, this blank gets the index of the
    text's first character.
    """
    if bpe.digits is None:
        yield from _split_part(text, 0, bpe)
        return
    for match in _compile_pattern(_DIGITS[bpe.digits]).finditer(text):
        yield from _split_part(match[0], match.start(), bpe)


def _split_part(part: str, start: int, bpe: ByteBpe) -> Iterator[Pretoken]:
    """Yield the pre-tokens of a part of the text.

    start: index of the part's first character in the whole text.
    """
    places = list(range(start, start + len(part)))
    if bpe.prefix_space and part and not part.startswith(" "):
        part, places = " " + part, [start, *places]
    for match in _compile_pattern(_PATTERNS[bpe.pattern]).finditer(part):
        yield match[0], places[slice(*match.span())]


@cache
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern on its first use, because compiling its large character classes is slow."""
    return re.compile(pattern)
