"""Cuts of the order of all keys into shards of near equal numbers of tokens.

A histogram of tokens over key prefixes is enough, so nobody sorts the whole corpus. It is sparse:
``{prefix: tokens}``. With some 256 prefixes a shard, a cut is off by a few documents at most.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import accumulate

from bertdata.errors import SettingsError
from bertdata.records import Buffer

_PREFIXES_OF_A_SHARD = 256
_KEY_BITS = 64


def prefix_bits(shards: int) -> int:
    """Bits of a key's prefix that the histogram tells apart."""
    return max(12, (shards * _PREFIXES_OF_A_SHARD - 1).bit_length())


def count_tokens(prefixes: Buffer, tokens: Buffer, shards: int) -> dict[int, int]:
    """The histogram of one part: tokens of the documents by the leading bits of their keys' first 64."""
    drop = _KEY_BITS - prefix_bits(shards)
    histogram: dict[int, int] = {}
    for prefix, number in zip(prefixes, tokens, strict=True):
        histogram[prefix >> drop] = histogram.get(prefix >> drop, 0) + number
    return histogram


def find_cuts(histogram: Mapping[int, int], shards: int) -> Buffer:
    """Prefixes at which shards 1, 2, ... begin, so that each gets near 1/shards of all tokens.

    Cut k lies where the running total comes nearest to k/shards of the whole (the earlier place of
    two that are equally near), but so that every shard has a prefix of its own. SettingsError where
    there are fewer prefixes than shards.
    """
    if shards > len(histogram):
        raise SettingsError(
            f"--num-shards {shards}: each shard must hold a document; the corpus has about {len(histogram)}"
        )
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


def deal_out(
    prefixes: Buffer, starts: Buffer, stop: int, cuts: Buffer, shards: int
) -> Iterator[tuple[int, int, int]]:
    """For each shard that gets some of a part's sorted documents: its number, and where they start and stop.

    prefixes and starts as in SortedDocuments, whose records are ``stop`` bytes long.
    """
    drop = _KEY_BITS - prefix_bits(shards)
    first = 0
    for shard in range(shards):
        last = bisect_left(prefixes, cuts[shard] << drop) if shard < len(cuts) else len(prefixes)
        if last > first:
            yield shard, starts[first], starts[last] if last < len(prefixes) else stop
        first = last
