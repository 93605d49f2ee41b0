"""Pure-Python twin of fairseq's masks (_native/examples/fairseq_masks.h).

An example's n units are its ids, or its words if whole words are masked. ``<s>`` and ``</s>`` are units too.
The random draws of one example are, in this order:

1. A number u in [0, 1). k = int(rate x n / multiple + u) units are chosen.
2. choice(n, k) without replacement: the units where masks start. Each mask covers ``multiple`` units.
3. Unless random_share and kept_share are both 0: a number for each of the n units. A chosen unit whose number
  is below the sum of both shares does not become [MASK].
4. If both shares are above 0: another number for each of the n units. A chosen unit that does not become
  [MASK] keeps its ids if the number is below kept_share / (kept_share + random_share), else its ids become
  random.
5. For each id of a random unit, ascending: a number. The random id is the first whose cumulative share is
   above it.

Source: fairseq/data/mask_tokens_dataset.py.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from bertdata.examples.fairseq.streams import MaskStream
from bertdata.examples.masking.reference import Masked, apply_replacements

SPECIAL_IDS = 4
"""Number of special ids at the start of fairseq's dictionary: ``<s> <pad> </s> <unk>``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FairseqRules:
    """Settings of fairseq's masks, prepared for one dictionary.

    limits: for each id, the share of random tokens that are this id or an earlier one
        (``compute_cumulative_shares``).
    begins_word: one byte per id, 1 if the id begins a word. None means that ids are masked one by one.
    multiple: number of consecutive units (ids or words) that each mask covers.
    """

    mask: int
    random_share: float
    kept_share: float
    limits: Sequence[float]
    begins_word: bytes | None = None
    multiple: int = 1


def compute_cumulative_shares(weights: Sequence[int]) -> list[float]:
    """Return for each id the share of random tokens that are this id or an earlier one.

    The first four ids are special tokens and get no share.

    weights: weight of each id. Its share is proportional to it.
    """
    counted = [0] * SPECIAL_IDS + list(weights[SPECIAL_IDS:])
    total = sum(counted)
    sums = list(accumulate(weight / total for weight in counted))
    return [found / sums[-1] for found in sums]


def compute_most_masks(length: int, rate: float) -> int:
    """Return the largest number of masks that an example of ``length`` ids can get, if ids are masked one by
    one.

    rate: share of the ids to mask.
    """
    return min(length, int(rate * length + 1))


def draw_masks(ids: list[int], rate: float, rules: FairseqRules, stream: MaskStream) -> Masked:
    """Draw the masks of one example. The docstring of this module lists the draws in their order.

    rate: share of the example's units (ids or words) to mask.
    """
    units = split_into_units(ids, rules.begins_word)
    count = len(units)
    # Step 1 of the module's docstring. For example, rate x n = 15.3 gives 16 units with a probability of 0.3,
    # else 15.
    wanted = min(int(rate * count / rules.multiple + stream.random()), count)
    # Step 2. Masks may overlap, so they can cover fewer than wanted x multiple units.
    starts = stream.choice(count, wanted)
    chosen = {start + step for start in starts for step in range(rules.multiple) if start + step < count}
    # Steps 3 and 4 decide which of the chosen units keep their ids and which become random.
    unchanged, random = _draw_unmasked(chosen, count, rules, stream)
    # Step 5 draws a number for each id that becomes random, in ascending order of position.
    replaced = {}
    for unit in sorted(chosen):
        for position in range(*units[unit]):
            if unit in random:
                replaced[position] = bisect_right(rules.limits, stream.random())
            else:
                replaced[position] = ids[position] if unit in unchanged else rules.mask
    return apply_replacements(ids, replaced)


def split_into_units(ids: list[int], begins_word: bytes | None) -> list[tuple[int, int]]:
    """Divide an example into units, which are ids or words. The first id must begin a word.

    Returns for each unit its first position and the position after its last.

    begins_word: one byte per id of the dictionary, 1 if it begins a word. None makes each id a unit.
    """
    if begins_word is None:
        return [(position, position + 1) for position in range(len(ids))]
    starts = [position for position, token in enumerate(ids) if begins_word[token]]
    return list(pairwise([*starts, len(ids)]))


def _draw_unmasked(
    chosen: set[int], count: int, rules: FairseqRules, stream: MaskStream
) -> tuple[set[int], set[int]]:
    """Draw which of the chosen units keep their ids, and which get random ids.

    The other chosen units become [MASK].
    """
    share = rules.random_share + rules.kept_share
    if share <= 0:
        return set(), set()
    # fairseq draws one number per unit with rand(n), so units that were not chosen take part in the draws.
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
