"""Cuts that divide the sorted documents of all inputs into shards with nearly equal numbers of tokens.

To find the cuts, it is enough to know the number of tokens for each prefix (the first bits) of the documents'
keys. The documents of all inputs therefore need not be sorted in one place. The numbers are stored as
``{prefix: tokens}``, without prefixes that do not occur. There are about 256 prefixes per shard, so a cut
misses its best place by a few documents at most.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import accumulate

from bertdata.errors import SettingsError
from bertdata.records import Buffer

_PREFIXES_OF_A_SHARD = 256
_KEY_BITS = 64


def count_prefix_bits(shards: int) -> int:
    """Return how many of the first bits of a document's key form the prefix by which tokens are counted."""
    return max(12, (shards * _PREFIXES_OF_A_SHARD - 1).bit_length())


def count_tokens(prefixes: Buffer, tokens: Buffer, shards: int) -> dict[int, int]:
    """Return the number of tokens of one part's documents, by key prefix.

    prefixes: first 64 bits of the key of each document.
    tokens: number of tokens of each document.
    """
    drop = _KEY_BITS - count_prefix_bits(shards)
    histogram: dict[int, int] = {}
    for prefix, number in zip(prefixes, tokens, strict=True):
        histogram[prefix >> drop] = histogram.get(prefix >> drop, 0) + number
    return histogram


def find_shard_cuts(histogram: Mapping[int, int], shards: int) -> Buffer:
    """Return the key prefixes at which shards 1, 2, ... begin, so that all shards get about equally many
    tokens.

    Shard k begins where the running total of tokens is nearest to k/shards of all tokens. If two places are
    equally near, the earlier place is taken. Every shard has at least one prefix.

    histogram: number of tokens by key prefix.

    Raises SettingsError if there are fewer prefixes than shards.
    """
    if shards > len(histogram):
        raise SettingsError(
            f"--num-shards {shards}: each shard must hold a document; the corpus has about {len(histogram)}"
        )
    # For example, four prefixes with 5, 3, 9 and 7 tokens have the running totals [0, 5, 8, 17, 24]. Each of
    # two shards should get 12 tokens. The total 8 is nearer to 12 than 17 is, so the second shard begins at
    # the third prefix. Both sides of each comparison are multiplied by ``shards`` to avoid fractions, so that
    # every machine finds the same cuts.
    prefixes = sorted(histogram)
    before = list(accumulate((histogram[prefix] for prefix in prefixes), initial=0))
    places = [0]
    for shard in range(1, shards):
        goal = shard * before[-1]
        place = bisect_left(before, goal, key=lambda tokens: tokens * shards)
        if goal - before[place - 1] * shards <= before[place] * shards - goal:
            place -= 1
        places.append(min(max(place, places[-1] + 1), len(prefixes) - (shards - shard)))
    return array("Q", (prefixes[place] for place in places[1:]))


def divide_part_into_shards(
    prefixes: Buffer, starts: Buffer, stop: int, cuts: Buffer, shards: int
) -> Iterator[tuple[int, int, int]]:
    """Yield (shard, start, stop) for each shard that gets documents of a sorted part.

    ``start`` and ``stop`` are the range of bytes of the shard's documents in the part's sorted records.

    prefixes: first 64 bits of the key of each document.
    starts: index of the first byte of each document's record.
    stop: number of bytes of all records.
    cuts: key prefixes at which shards 1, 2, ... begin.
    """
    drop = _KEY_BITS - count_prefix_bits(shards)
    first = 0
    for shard in range(shards):
        last = bisect_left(prefixes, cuts[shard] << drop) if shard < len(cuts) else len(prefixes)
        if last > first:
            yield shard, starts[first], starts[last] if last < len(prefixes) else stop
        first = last
