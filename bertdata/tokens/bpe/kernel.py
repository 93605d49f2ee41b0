"""Makes the C++ kernel of a byte-level BPE tokeniser from its settings and the Unicode tables."""

from array import array
from functools import cache
from typing import Any

from bertdata._native import kernels
from bertdata.errors import VocabularyError
from bertdata.records import Vocabulary
from bertdata.tokens.bpe.settings import ByteBpe, make_byte_alphabet
from bertdata.unicode.tables import Ranges, load_library_classes

_LETTER, _NUMBER, _SPACE, _WORD, _NUMERIC = 1, 2, 4, 8, 16
"""Bits for the classes of a character. They have the same values as in _native/tokens/bpe_characters.h."""


def make_kernel(bpe: ByteBpe, vocabulary: Vocabulary) -> Any:
    """Make the C++ kernel of a byte-level BPE tokeniser.

    Raises VocabularyError if the id of a token is not less than the size of the vocabulary.
    """
    ranked = sorted((rank, left, right, joined) for (left, right), (rank, joined) in bpe.merges.items())
    lengths = array("I", bytes(4 * vocabulary.size))
    try:
        for token, token_id in bpe.ids.items():
            lengths[token_id] = len(token)
    except IndexError:
        raise VocabularyError(
            f"{vocabulary.name}: token {token!r} has id {token_id}, expected less than {vocabulary.size}"
        ) from None
    return kernels.ByteBpe(
        pattern=bpe.pattern,
        digits=bpe.digits or "",
        prefix_space=bpe.prefix_space,
        composes=bpe.composes,
        wide=vocabulary.wide,
        unknown=vocabulary.unk,
        units=bpe.units,
        merges=array("I", [token_id for merge in ranked for token_id in merge[1:]]),
        whole_words=_find_whole_words(bpe) if bpe.whole_words else [],
        added=[
            (
                token.content.encode(),
                token.id,
                token.lstrip,
                token.rstrip,
                token.single_word,
                token.normalized,
            )
            for token in bpe.added
        ],
        lengths=lengths,
        characters=_make_character_classes(),
        newer_marks=_list_points(load_library_classes().newer_mark),
        never_composed=_list_points(load_library_classes().never_composed),
    )


def _find_whole_words(bpe: ByteBpe) -> list[tuple[bytes, int]]:
    """Return the bytes and the id of each token that can be equal to a whole pre-token.

    Such a token consists only of characters of the byte alphabet (see ``make_byte_alphabet``).
    """
    bytes_of = {ord(unit): byte for byte, unit in enumerate(make_byte_alphabet())}
    found = []
    for token, token_id in bpe.ids.items():
        try:
            found.append((token.translate(bytes_of).encode("latin-1"), token_id))
        except UnicodeEncodeError:
            # The token contains a character outside the byte alphabet, so no pre-token is equal to it.
            continue
    return found


@cache
def _make_character_classes() -> bytes:
    """Return one byte for each code point. Its bits say which character classes the code point belongs to."""
    bits = bytearray(0x110000)
    tables = {
        _LETTER | _WORD: load_library_classes().letter,
        _NUMBER | _NUMERIC: load_library_classes().number,
        _NUMERIC: load_library_classes().newer_number,
        _SPACE: load_library_classes().space,
        _WORD: load_library_classes().word_but_letter,
    }
    for added, table in tables.items():
        for first, last in table:
            bits[first : last + 1] = bytes(old | added for old in bits[first : last + 1])
    return bytes(bits)


def _list_points(table: Ranges) -> list[int]:
    """List all code points in a table, whose entries are ranges from a first to a last code point."""
    return [point for first, last in table for point in range(first, last + 1)]
