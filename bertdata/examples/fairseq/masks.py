"""The readable twin of fairseq's masks (_native/examples/fairseq_masks.h): the order of draws of an example.

1. One random u: k = int(rate x n / multiple + u) of the n units are chosen. A unit is an id, or with whole
   words a word; ``<s>`` and ``</s>`` are units too.
2. choice(n, k) without replacement: where masks start. Each goes on for ``multiple`` units.
3. Unless both shares are 0, a random for each of the n units: a chosen one below their sum is not masked.
4. Where neither is 0, another for each unit: below kept / (kept + random) the ids stay, else they are random.
5. For each id of a random unit, ascending: a random, which an id's cumulative share exceeds.

Source: fairseq/data/mask_tokens_dataset.py.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from bertdata.examples.fairseq.streams import MaskStream
from bertdata.examples.masking.reference import Masked, with_replaced

SPECIAL_IDS = 4
"""``<s> <pad> </s> <unk>``, the first ids of fairseq's dictionary."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FairseqRules:
    """Settings of fairseq's masks for one dictionary.

    limits: for each id the share of random tokens up to it (``cumulative_shares``). begins_word: by id, 1
    where a word begins; None: ids are masked one by one. multiple: units that are masked in a row.
    """

    mask: int
    random_share: float
    kept_share: float
    limits: Sequence[float]
    begins_word: bytes | None = None
    multiple: int = 1


def cumulative_shares(weights: Sequence[int]) -> list[float]:
    """The share of random tokens up to each id. weights: of the ids, the first four of which do not count."""
    counted = [0] * SPECIAL_IDS + list(weights[SPECIAL_IDS:])
    total = sum(counted)
    sums = list(accumulate(weight / total for weight in counted))
    return [found / sums[-1] for found in sums]


def most_masks(length: int, rate: float) -> int:
    """The most masks of an example of so many ids, masked one by one."""
    return min(length, int(rate * length + 1))


def draw_masks(ids: list[int], rate: float, rules: FairseqRules, stream: MaskStream) -> Masked:
    """The example's ids with masks of ``rate`` of them."""
    units = units_of(ids, rules.begins_word)
    count = len(units)
    wanted = min(int(rate * count / rules.multiple + stream.random()), count)
    starts = stream.choice(count, wanted)
    chosen = {start + step for start in starts for step in range(rules.multiple) if start + step < count}
    unchanged, random = _without_mask(chosen, count, rules, stream)
    replaced = {}
    for unit in sorted(chosen):
        for position in range(*units[unit]):
            if unit in random:
                replaced[position] = bisect_right(rules.limits, stream.random())
            else:
                replaced[position] = ids[position] if unit in unchanged else rules.mask
    return with_replaced(ids, replaced)


def units_of(ids: list[int], begins_word: bytes | None) -> list[tuple[int, int]]:
    """The first position of each unit and the one behind it. An example's first id begins a word."""
    if begins_word is None:
        return [(position, position + 1) for position in range(len(ids))]
    starts = [position for position, token in enumerate(ids) if begins_word[token]]
    return list(pairwise([*starts, len(ids)]))


def _without_mask(
    chosen: set[int], count: int, rules: FairseqRules, stream: MaskStream
) -> tuple[set[int], set[int]]:
    """Of the chosen units those whose ids stay, and those whose ids become random."""
    share = rules.random_share + rules.kept_share
    if share <= 0:
        return set(), set()
    drawn = [stream.random() for _ in range(count)]
    found = {unit for unit in chosen if drawn[unit] < share}
    if rules.random_share == 0:
        return found, set()
    if rules.kept_share == 0:
        return set(), found
    kept = rules.kept_share / share
    drawn = [stream.random() for _ in range(count)]
    unchanged = {unit for unit in found if drawn[unit] < kept}
    return unchanged, found - unchanged
