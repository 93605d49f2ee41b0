"""Splits text into words.

The steps are cleaning, splitting at white space, conversion to lower case, removal of accents, and splitting
at punctuation marks. This is the BasicTokenizer of Devlin et al. 2018.
"""

from collections.abc import Iterator

from bertdata.config.dialects import SPECIAL_TOKENS, Dialect
from bertdata.unicode import characters


def split_words(text: str, dialect: Dialect, lower_case: bool, keep_accents: bool = False) -> list[str]:
    """Split a line into words and punctuation marks.

    dialect: rules of the program that is reproduced, such as MLPerf's.
    lower_case: convert the words to lower case and remove their accents.
    keep_accents: keep the accents of lower-cased words.

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
    """Table for ``str.translate`` that maps each code point to its replacement.

    An entry is computed when its character is met for the first time.
    """

    def __init__(self, drops_unassigned: bool) -> None:
        self._drops_unassigned = drops_unassigned

    def __missing__(self, code_point: int) -> str:
        self[code_point] = self._clean_character(chr(code_point))
        return self[code_point]

    def _clean_character(self, character: str) -> str:
        """Return the text that replaces a character: nothing, a blank, or the character itself."""
        if character in "\0\ufffd" or characters.is_control(character):
            return ""
        if self._drops_unassigned and characters.is_unassigned(character):
            return ""
        if characters.is_space(character):
            return " "
        return f" {character} " if characters.is_ideograph(character) else character


_CLEANING = {drops_unassigned: _Cleaning(drops_unassigned) for drops_unassigned in (False, True)}


def _split_token(token: str, dialect: Dialect, lower_case: bool, keep_accents: bool) -> Iterator[str]:
    """Split a piece of text without white space into words and punctuation marks."""
    # A text may contain the spelling of a special token, such as "[MASK]". Some dialects keep it whole, and
    # others split it at its brackets.
    if dialect.keeps_special_tokens and token in SPECIAL_TOKENS:
        yield token
        return
    if lower_case:
        token = characters.lower(token)
    if lower_case and not keep_accents:
        # Remove accents: "é" is decomposed into "e" and a combining accent, and the accent is left out.
        decomposed = characters.decompose(token)
        token = "".join(character for character in decomposed if not characters.is_mark(character))
    word = ""
    # Each punctuation mark becomes a word of its own: "naive!?" is split into "naive", "!" and "?".
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
