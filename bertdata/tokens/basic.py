"""Splits text into words: cleaning, white space, case, accents, punctuation.

This is the BasicTokenizer of Devlin et al. 2018.
"""

from collections.abc import Iterator

from bertdata.config.dialects import SPECIAL_TOKENS, Dialect
from bertdata.unicode import characters


def split_words(text: str, dialect: Dialect, lower_case: bool, keep_accents: bool = False) -> list[str]:
    """Split a line into words and punctuation marks.

    keep_accents: do not strip accents from lower-cased text.

    >>> from bertdata.config.dialects import find_dialect
    >>> split_words("Ὀδυσσεὺς: naïve!", find_dialect("mlperf"), lower_case=True)
    ['οδυσσευς', ':', 'naive', '!']
    """
    return [
        word
        for token in clean_text(text, dialect.drops_unassigned).split()
        for word in _split_token(token, dialect, lower_case, keep_accents)
    ]


def clean_text(text: str, drops_unassigned: bool) -> str:
    """Remove control characters, replace white space by blanks, and put blanks around each ideograph.

    drops_unassigned: also remove code points that are not assigned in Unicode 11.0.
    """
    return text.translate(_CLEANING[drops_unassigned])


class _Cleaning(dict[int, str]):
    """Maps each code point to its replacement. Entries are computed when a character is first met."""

    def __init__(self, drops_unassigned: bool) -> None:
        self._drops_unassigned = drops_unassigned

    def __missing__(self, code_point: int) -> str:
        self[code_point] = self._clean_character(chr(code_point))
        return self[code_point]

    def _clean_character(self, character: str) -> str:
        if character in "\0\ufffd" or characters.is_control(character):
            return ""
        if self._drops_unassigned and characters.is_unassigned(character):
            return ""
        if characters.is_space(character):
            return " "
        return f" {character} " if characters.is_ideograph(character) else character


_CLEANING = {drops_unassigned: _Cleaning(drops_unassigned) for drops_unassigned in (False, True)}


def _split_token(token: str, dialect: Dialect, lower_case: bool, keep_accents: bool) -> Iterator[str]:
    """Split a run of characters without white space into words, at punctuation marks and Chinese
    characters.
    """
    # If a text contains the spelling of a special token, such as "[MASK]", some dialects leave it whole.
    # Others split it at its brackets.
    if dialect.keeps_special_tokens and token in SPECIAL_TOKENS:
        yield token
        return
    if lower_case:
        token = characters.lower(token)
    if lower_case and not keep_accents:
        # é is decomposed to e and an accent, and then all accents are removed.
        decomposed = characters.decompose(token)
        token = "".join(character for character in decomposed if not characters.is_mark(character))
    word = ""
    # naive!? -> naive, !, ?: each punctuation mark is a word.
    for character in token:
        if not characters.is_punctuation(character):
            word += character
            continue
        if word:
            yield word
        yield character
        word = ""
    if word:
        yield word
