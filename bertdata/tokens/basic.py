"""Text to words: cleaning, white space, case, accents, punctuation (BasicTokenizer of Devlin et al. 2018)."""

from collections.abc import Iterator

from bertdata.config.dialects import SPECIAL_TOKENS, Dialect
from bertdata.unicode import characters


def split_words(text: str, dialect: Dialect, lower_case: bool, keep_accents: bool = False) -> list[str]:
    """Words and punctuation marks of a line, in order.

    keep_accents: lower-cased text keeps its accents.

    >>> from bertdata.config.dialects import find_dialect
    >>> split_words("Ὀδυσσεὺς: naïve!", find_dialect("mlperf"), lower_case=True)
    ['οδυσσευς', ':', 'naive', '!']
    """
    return [
        word
        for token in clean(text, dialect.drops_unassigned).split()
        for word in _split_token(token, dialect, lower_case, keep_accents)
    ]


def clean(text: str, drops_unassigned: bool) -> str:
    """The text without control characters, each white space a blank, each ideograph between blanks."""
    return text.translate(_CLEANING[drops_unassigned])


class _Cleaning(dict[int, str]):
    """Replacement of each code point. Filled as characters are met."""

    def __init__(self, drops_unassigned: bool) -> None:
        self._drops_unassigned = drops_unassigned

    def __missing__(self, code_point: int) -> str:
        self[code_point] = self._cleaned(chr(code_point))
        return self[code_point]

    def _cleaned(self, character: str) -> str:
        if character in "\0\ufffd" or characters.is_control(character):
            return ""
        if self._drops_unassigned and characters.is_unassigned(character):
            return ""
        if characters.is_space(character):
            return " "
        return f" {character} " if characters.is_ideograph(character) else character


_CLEANING = {drops_unassigned: _Cleaning(drops_unassigned) for drops_unassigned in (False, True)}


def _split_token(token: str, dialect: Dialect, lower_case: bool, keep_accents: bool) -> Iterator[str]:
    """Words of one white-space token."""
    if dialect.keeps_special_tokens and token in SPECIAL_TOKENS:
        yield token
        return
    if lower_case:
        token = characters.lower(token)
    if lower_case and not keep_accents:
        decomposed = characters.decompose(token)
        token = "".join(character for character in decomposed if not characters.is_mark(character))
    word = ""
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
