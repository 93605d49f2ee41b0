"""ALBERT's masks: n-grams of words in a random order, as many as there is room for.

Lan et al. 2020, section 3.1. In files in the order of draws of the program that released it: twin of
_native/examples/bert.h. At load from the stream of each example: twin of _native/examples/dynamic_masking.h.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, chain

from bertdata.examples.dynamic_masking.counter_stream import CounterStream
from bertdata.examples.masking.mask_count import masks_wanted
from bertdata.examples.masking.prepared_settings import MaskingRules
from bertdata.examples.masking.reference import (
    Masked,
    Starts,
    Word,
    random_order,
    replacement_at_load,
    replacement_in_file,
    with_replaced,
    words_of,
)
from bertdata.examples.random_stream import RandomStream


def ngram_limits(longest: int, *, favors_shorter: bool) -> list[float]:
    """The limits of a draw in [0, 1): the place of the first that is above it, from 1, is a number of words.

    n words have a probability of 1/n over the sum of all, or n has that of longest + 1 - n. Up to 7 words
    the limits are the doubles that NumPy's ``choice`` compares with.
    """
    shares = _normal([1 / n for n in range(1, longest + 1)])
    if not favors_shorter:
        shares.reverse()
    limits = list(accumulate(_normal(shares)))
    return [limit / limits[-1] for limit in limits]


def _normal(shares: list[float]) -> list[float]:
    """The shares over their sum, added from the first on. ``sum`` adds otherwise since Python 3.12."""
    *_, whole = accumulate(shares)
    return [share / whole for share in shares]


class NgramLengths:
    """The numbers of words of n-grams. random: gives the next number in [0, 1)."""

    def __init__(self, limits: Sequence[float], random: Callable[[], float]) -> None:
        self._limits, self._random = limits, random

    def draw(self) -> int:
        """The next number of words."""
        return bisect_right(self._limits, self._random()) + 1


def mask_ngrams(
    original: list[int],
    words: list[Word],
    rules: MaskingRules,
    stream: RandomStream,
    lengths: NgramLengths,
    *,
    permutes: bool,
) -> Masked:
    """The ids of an example with masked n-grams of its words.

    The words are shuffled: each is the first of an n-gram, whose length is drawn as it is reached. The
    positions of each n-gram then draw what replaces them, once or twice, and a third time for a random token.
    The words are shuffled again. permutes: as many n-grams are chosen again of the other positions, whose ids
    are shuffled among them.
    """
    if rules.settings.masked_lm_prob == 0:
        return Masked(original, [], [])
    wanted, firsts = masks_wanted(rules.settings, len(original)), list(range(len(words)))
    stream.shuffle(firsts)
    chosen = _choose(firsts, words, wanted, (), lengths)
    replaced = {place: replacement_in_file(original[place], rules, stream) for place in chosen}
    stream.shuffle(firsts)
    if permutes:
        others = sorted(_choose(firsts, words, wanted, chosen, lengths))
        sources = others.copy()
        stream.shuffle(sources)
        replaced |= {place: original[source] for place, source in zip(others, sources, strict=True)}
    return with_replaced(original, replaced)


def mask_ngrams_at_load(
    original: list[int],
    rate: float,
    limits: Sequence[float],
    rules: MaskingRules,
    stream: CounterStream,
    starts: Starts = None,
) -> Masked:
    """The unmasked ids with masked n-grams of words, ``rate`` of them. starts: as of words_of.

    A first word is drawn of all that are left, then its n-gram's length by 32 bits, until there are enough;
    then what stands at each position, from the first to the last.
    """
    words = words_of(original, rules, starts)
    lengths = NgramLengths(limits, lambda: stream.word() / (1 << 32))
    firsts = random_order(list(range(len(words))), stream)
    chosen = _choose(firsts, words, masks_wanted(rules.settings, len(original), rate), (), lengths)
    return with_replaced(
        original, {place: replacement_at_load(original[place], rules, stream) for place in sorted(chosen)}
    )


def _choose(
    firsts: Iterable[int], words: Sequence[Word], wanted: int, taken: Iterable[int], lengths: NgramLengths
) -> list[int]:
    """Positions of n-grams, at most ``wanted`` in all, in the order in which they are chosen.

    An n-gram with too many loses words at its end. It is left out where one word is still too many, and where
    a position is taken already. firsts: the first word of each. taken: positions that are not free.
    """
    covered, chosen, left = set(taken), list[int](), iter(firsts)
    while len(chosen) < wanted and (first := next(left, None)) is not None:
        longest = lengths.draw()
        shortened = (list(chain(*words[first : first + count])) for count in range(longest, 0, -1))
        ngram = next((one for one in shortened if len(chosen) + len(one) <= wanted), [])
        if covered.isdisjoint(ngram):
            covered.update(ngram)
            chosen += ngram
    return chosen
