"""Cuts that divide the order of all keys into shards with nearly equal numbers of tokens.

The cuts only need a histogram: the number of tokens for each key prefix. So the whole corpus need not be
sorted in one place. The histogram is sparse, ``{prefix: tokens}``. With about 256 prefixes per shard, a cut
is off by a few documents at most.
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
    """Return how many leading bits of a document's sort key the histogram of tokens distinguishes."""
    return max(12, (shards * _PREFIXES_OF_A_SHARD - 1).bit_length())


def count_tokens(prefixes: Buffer, tokens: Buffer, shards: int) -> dict[int, int]:
    """Return the histogram of one part.

    prefixes: first 64 bits of each document's key.
    tokens: number of tokens of each document.
    """
    drop = _KEY_BITS - count_prefix_bits(shards)
    histogram: dict[int, int] = {}
    for prefix, number in zip(prefixes, tokens, strict=True):
        histogram[prefix >> drop] = histogram.get(prefix >> drop, 0) + number
    return histogram


def find_shard_cuts(histogram: Mapping[int, int], shards: int) -> Buffer:
    """Return the prefixes at which shards 1, 2, ... begin, so that all get about equally many tokens.

    Cut k is where the running total is nearest to k/shards of all tokens. If two places are equally near, the
    earlier one is taken. Every shard has at least one prefix. Raises SettingsError if there are fewer
    prefixes than shards.
    """
    if shards > len(histogram):
        raise SettingsError(
            f"--num-shards {shards}: each shard must hold a document; the corpus has about {len(histogram)}"
        )
    # For example, prefixes with tokens [5, 3, 9, 7] have running totals [0, 5, 8, 17, 24]. Two shards should
    # get 12 tokens each. The total 8 is nearer to 12 than 17 is, so the second shard begins at the third
    # prefix. All comparisons are multiplied by ``shards``, which avoids fractions, so that every machine
    # finds the same cuts.
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


def deal_to_shards(
    prefixes: Buffer, starts: Buffer, stop: int, cuts: Buffer, shards: int
) -> Iterator[tuple[int, int, int]]:
    """Yield (shard, start, stop) for each shard that gets documents of a sorted part.

    start, stop: the range of bytes of these documents in the part's records.

    prefixes, starts: the first 64 bits of each document's key, and the first byte of its record.
    """
    drop = _KEY_BITS - count_prefix_bits(shards)
    first = 0
    for shard in range(shards):
        last = bisect_left(prefixes, cuts[shard] << drop) if shard < len(cuts) else len(prefixes)
        if last > first:
            yield shard, starts[first], starts[last] if last < len(prefixes) else stop
        first = last
