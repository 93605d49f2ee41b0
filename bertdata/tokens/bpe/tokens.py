"""Byte-level BPE in pure Python: added tokens, normalisation, pre-tokens, merges."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from bertdata.tokens.bpe.added import AddedTokenFinder
from bertdata.tokens.bpe.pretokens import split_pretokens
from bertdata.tokens.bpe.settings import ByteBpe, make_byte_alphabet
from bertdata.unicode.composition import compose


class BpeToken(NamedTuple):
    """A token and its position: the range of the characters of the text whose bytes are in the token."""

    id: int
    start: int
    stop: int
    starts_word: bool


class TextSplitter:
    """Splits texts into the tokens of one byte-level BPE."""

    def __init__(self, bpe: ByteBpe) -> None:
        self._bpe = bpe
        self._in_text = AddedTokenFinder([token for token in bpe.added if not token.normalized])
        self._in_normalized = AddedTokenFinder([token for token in bpe.added if token.normalized])

    def split(self, text: str) -> Iterator[BpeToken]:
        """Yield the tokens of one text, the same as from ``tokenizers`` without special tokens."""
        # The steps are: find added tokens, normalise the rest (NFC), find the added tokens of normalised
        # text. Each step keeps the index that every character has in the original text, because the tokens'
        # positions refer to that text.
        for start, stop, token_id in self._in_text.split(text):
            if token_id is not None:
                yield BpeToken(token_id, start, stop, True)
                continue
            normalized, places = text[start:stop], list(range(stop - start))
            if self._bpe.composes:
                normalized, places = compose(normalized)
            for token in self._split_normalized(normalized):
                first, last = places[token.start], places[token.stop - 1]
                yield token._replace(start=start + first, stop=start + last + 1)

    def _split_normalized(self, text: str) -> Iterator[BpeToken]:
        """Yield the tokens of a text to which the normaliser has already been applied."""
        for start, stop, token_id in self._in_normalized.split(text):
            if token_id is not None:
                yield BpeToken(token_id, start, stop, True)
                continue
            for pretoken, places in split_pretokens(text[start:stop], self._bpe):
                yield from self._split_pretoken(pretoken, [start + place for place in places])

    def _split_pretoken(self, pretoken: str, places: list[int]) -> Iterator[BpeToken]:
        """Yield the tokens of a pre-token. places: the index of each of its characters."""
        # "né" has the bytes n, 0xC3, 0xA9 and the characters 0, 1, 1. A token may end within a character.
        of_bytes = [
            place for character, place in zip(pretoken, places, strict=True) for _ in character.encode()
        ]
        done = 0
        for token_id, length in split_units(pretoken, self._bpe):
            first, last = of_bytes[done], of_bytes[done + length - 1]
            yield BpeToken(token_id, first, last + 1, done == 0)
            done += length


def split_units(pretoken: str, bpe: ByteBpe) -> list[tuple[int, int]]:
    """Return the id and the number of bytes of each token of a pre-token.

    At first each byte is a token. Then the pair of neighbours whose merge has the lowest rank is merged, the
    leftmost of several such pairs. This is repeated until no pair can be merged.
    """
    data = pretoken.encode()
    if bpe.whole_words:
        whole = bpe.ids.get("".join(make_byte_alphabet()[byte] for byte in data))
        if whole is not None:
            return [(whole, len(data))]
    # "low" with the merges (o, w) of rank 0 and (l, ow) of rank 1: l o w -> l ow -> low
    ids, lengths = [bpe.units[byte] for byte in data], [1] * len(data)
    while True:
        ranked = [
            (*bpe.merges[pair], place) for place, pair in enumerate(pairwise(ids)) if pair in bpe.merges
        ]
        if not ranked:
            return list(zip(ids, lengths, strict=True))
        _, merged, place = min(ranked)
        ids[place : place + 2] = [merged]
        lengths[place : place + 2] = [lengths[place] + lengths[place + 1]]
