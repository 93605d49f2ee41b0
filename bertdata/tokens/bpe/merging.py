"""Pre-tokens to ids by merges (byte pair encoding, Sennrich et al. 2016, on bytes, as GPT-2 applies it)."""

from itertools import pairwise

from bertdata.tokens.bpe.settings import ByteBpe, byte_alphabet


def split_units(pretoken: str, bpe: ByteBpe) -> list[tuple[int, int]]:
    """Id and number of bytes of each token of a pre-token.

    It begins as one token a byte. Of the pairs of neighbours that a merge joins, that of the lowest rank is
    joined, the leftmost of several, until no merge joins any.
    """
    data = pretoken.encode()
    if bpe.whole_words:
        whole = bpe.ids.get("".join(byte_alphabet()[byte] for byte in data))
        if whole is not None:
            return [(whole, len(data))]
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
