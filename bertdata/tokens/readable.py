"""Shows a vocabulary's tokens as readable text."""

from bertdata.records import Vocabulary
from bertdata.tokens.bpe.settings import make_byte_alphabet

_BLANK = "Ġ"
"""Represents a blank in tokens of byte-level BPE."""
_METASPACE = "\u2581"
"""Represents a blank in tokens of SentencePiece's models."""


def make_words_readable(vocabulary: Vocabulary) -> list[str]:
    """Return the token of each id as readable text: ``Ġthe`` and ``▁the`` become `` the``.

    A token that ends within a character is shown with the letters that represent its bytes.
    """
    words = list(vocabulary.words)
    if vocabulary.kind == "bpe" and _is_byte_level(words):
        return [_decode_word(word) for word in words]
    if vocabulary.kind in ("bpe", "unigram"):
        return [word.replace(_METASPACE, " ") for word in words]
    return words


def _is_byte_level(words: list[str]) -> bool:
    """Return True if every byte is a token, which means byte-level BPE."""
    return set(make_byte_alphabet()) <= set(words)


def _decode_word(word: str) -> str:
    """Convert the characters that represent bytes back to text, if the bytes are valid UTF-8."""
    numbers = [_BYTES.get(character) for character in word]
    try:
        return bytes(numbers).decode()  # type: ignore[arg-type]  # None is refused below
    except (TypeError, ValueError):
        return word.replace(_BLANK, " ")


_BYTES = {character: number for number, character in enumerate(make_byte_alphabet())}
