"""Converts the tokens of a vocabulary to readable text."""

from bertdata.records import Vocabulary
from bertdata.tokens.bpe.settings import make_byte_alphabet

_BLANK = "Ġ"
"""Character that represents a blank in the tokens of byte-level BPE."""
_METASPACE = "\u2581"
"""Character that represents a blank in the tokens of SentencePiece's models."""


def make_words_readable(vocabulary: Vocabulary) -> list[str]:
    """Return the token of each id as readable text. For example, ``Ġthe`` and ``▁the`` become `` the``.

    If a token of byte-level BPE has only some bytes of a character, the letters that represent its bytes are
    kept.
    """
    words = list(vocabulary.words)
    if vocabulary.kind == "bpe" and _is_byte_level(words):
        return [_decode_word(word) for word in words]
    if vocabulary.kind in ("bpe", "unigram"):
        return [word.replace(_METASPACE, " ") for word in words]
    return words


def _is_byte_level(words: list[str]) -> bool:
    """Return True if the vocabulary has a token for every byte, as only byte-level BPE has."""
    return set(make_byte_alphabet()) <= set(words)


def _decode_word(word: str) -> str:
    """Decode a token of byte-level BPE, whose characters represent bytes.

    It is returned unchanged if its bytes are not valid UTF-8.
    """
    numbers = [_BYTES.get(character) for character in word]
    try:
        return bytes(numbers).decode()  # type: ignore[arg-type]  # None is refused below
    except (TypeError, ValueError):
        return word.replace(_BLANK, " ")


_BYTES = {character: number for number, character in enumerate(make_byte_alphabet())}
