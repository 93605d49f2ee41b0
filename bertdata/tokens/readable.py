"""Converts the tokens of a vocabulary to readable text."""

from collections.abc import Sequence

from bertdata.records import ROLES, Vocabulary
from bertdata.tokens.bpe.settings import make_byte_alphabet

_BLANK = "Ġ"
"""Character that represents a blank in the tokens of byte-level BPE."""
_CONTINUATION = "##"
"""Beginning of a token of a WordPiece vocabulary that continues a word."""
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


def join_tokens(vocabulary: Vocabulary, ids: Sequence[int], *, skip_special: bool = False) -> str:
    """Return the text of token ids.

    The text is not always the original text: a tokeniser may have lower-cased it, and a WordPiece vocabulary
    does not say where there was a blank before a punctuation mark.

    skip_special: leave out special tokens.
    """
    special = {getattr(vocabulary, role) for role in ROLES} - {None, vocabulary.unk}
    chosen = [token for token in ids if not (skip_special and token in special)]
    words = [vocabulary.words[token] for token in chosen]
    if vocabulary.kind == "bpe" and _is_byte_level(vocabulary.words):
        return _decode_words(words)
    if vocabulary.kind in ("bpe", "unigram"):
        return "".join(words).replace(_METASPACE, " ").removeprefix(" ")
    continues = vocabulary.continues_word
    text = ""
    for token, word in zip(chosen, words, strict=True):
        if continues is not None and continues[token]:
            text += word.removeprefix(_CONTINUATION)
        else:
            text += f" {word}" if text else word
    return text


def _decode_words(words: Sequence[str]) -> str:
    """Return the text of tokens of byte-level BPE, whose characters represent bytes.

    Characters whose bytes are in several tokens are put together. A character that represents no byte, in an
    added token, is kept.
    """
    data = bytearray()
    for character in "".join(words):
        number = _BYTES.get(character)
        data += character.encode() if number is None else bytes([number])
    return data.decode(errors="replace").removeprefix(" ")


def _is_byte_level(words: Sequence[str]) -> bool:
    """Return True if the vocabulary has a token for every byte, as only byte-level BPE has."""
    # These tokens are usually the first of a vocabulary, so that few words are looked at.
    missing = set(_BYTES)
    for word in words:
        missing.discard(word)
        if not missing:
            return True
    return False


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
