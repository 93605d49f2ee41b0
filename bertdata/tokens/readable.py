"""A vocabulary's tokens as a person reads them."""

from bertdata.records import Vocabulary
from bertdata.tokens.bpe.settings import byte_alphabet

_BLANK = "Ġ"
"""A blank in tokens of byte-level BPE."""
_METASPACE = "\u2581"
"""A blank in tokens of SentencePiece's models."""


def readable_words(vocabulary: Vocabulary) -> list[str]:
    """The token of each id as text: ``Ġthe`` and ``▁the`` as `` the``.

    A token with a part of a character shows the letters that stand for its bytes.
    """
    words = list(vocabulary.words)
    if vocabulary.kind == "bpe" and _is_byte_level(words):
        return [_decoded(word) for word in words]
    if vocabulary.kind in ("bpe", "unigram"):
        return [word.replace(_METASPACE, " ") for word in words]
    return words


def _is_byte_level(words: list[str]) -> bool:
    """True where each byte is a token, by the character that stands for it."""
    return set(byte_alphabet()) <= set(words)


def _decoded(word: str) -> str:
    numbers = [_BYTES.get(character) for character in word]
    try:
        return bytes(numbers).decode()  # type: ignore[arg-type]  # None is refused below
    except (TypeError, ValueError):
        return word.replace(_BLANK, " ")


_BYTES = {character: number for number, character in enumerate(byte_alphabet())}
