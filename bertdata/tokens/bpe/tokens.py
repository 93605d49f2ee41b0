"""Byte-level BPE in pure Python.

The steps are: find added tokens, normalise the text, split it into pre-tokens, and merge bytes to tokens.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from bertdata.tokens.bpe.added import AddedTokenFinder
from bertdata.tokens.bpe.pretokens import split_pretokens
from bertdata.tokens.bpe.settings import ByteBpe, make_byte_alphabet
from bertdata.unicode.composition import compose


class BpeToken(NamedTuple):
    """A token with its position in the text.

    start, stop: range of the characters whose bytes are in the token. A token may contain only some bytes of
        a character.
    starts_word: True for the first token of a pre-token, and for an added token.
    """

    id: int
    start: int
    stop: int
    starts_word: bool


class TextSplitter:
    """Object that splits texts into tokens by the settings of a byte-level BPE."""

    def __init__(self, bpe: ByteBpe) -> None:
        self._bpe = bpe
        self._in_text = AddedTokenFinder([token for token in bpe.added if not token.normalized])
        self._in_normalized = AddedTokenFinder([token for token in bpe.added if token.normalized])

    def split(self, text: str) -> Iterator[BpeToken]:
        """Yield the tokens of a text, the same as ``tokenizers`` returns with add_special_tokens=False."""
        # The steps are: find the added tokens of the original text, normalise the text between them (NFC),
        # and find the added tokens of the normalised text. Each step keeps the index of every character in
        # the original text, because the positions of the tokens refer to that text.
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
        """Yield the tokens of a normalised text."""
        for start, stop, token_id in self._in_normalized.split(text):
            if token_id is not None:
                yield BpeToken(token_id, start, stop, True)
                continue
            for pretoken, places in split_pretokens(text[start:stop], self._bpe):
                yield from self._split_pretoken(pretoken, [start + place for place in places])

    def _split_pretoken(self, pretoken: str, places: list[int]) -> Iterator[BpeToken]:
        """Yield the tokens of a pre-token.

        places: for each character of the pre-token, its index in the text.
        """
        # List the character that each byte belongs to: "né" has the three bytes 0x6E, 0xC3 and 0xA9, which
        # belong to the characters 0, 1 and 1. A token may end between two bytes of a character.
        of_bytes = [
            place for character, place in zip(pretoken, places, strict=True) for _ in character.encode()
        ]
        done = 0
        for token_id, length in split_into_tokens(pretoken, self._bpe):
            first, last = of_bytes[done], of_bytes[done + length - 1]
            yield BpeToken(token_id, first, last + 1, done == 0)
            done += length


def split_into_tokens(pretoken: str, bpe: ByteBpe) -> list[tuple[int, int]]:
    """Split a pre-token into tokens. Return the id and the number of bytes of each token.

    At first each byte is a token. In each step, the pair of neighbours whose merge has the lowest rank
    becomes a single token. If there are several such pairs, the leftmost is merged. This is repeated until no
    pair can be merged.
    """
    data = pretoken.encode()
    if bpe.whole_words:
        whole = bpe.ids.get("".join(make_byte_alphabet()[byte] for byte in data))
        if whole is not None:
            return [(whole, len(data))]
    # For example, if the merge (o, w) has rank 0 and (l, ow) has rank 1, the word "low" becomes "l o w", then
    # "l ow", then "low".
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
