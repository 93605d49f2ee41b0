"""ALBERT's masks: n-grams of words in random order, until enough positions are masked.

Lan et al. 2020, section 3.1. In files the order of random draws is that of the program released with the
paper (pure-Python twin of _native/examples/bert.h). At load each example has its own stream (twin of
_native/examples/dynamic_masking.h).
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, chain

from bertdata.examples.dynamic_masking.counter_stream import CounterStream
from bertdata.examples.masking.mask_count import compute_masks_wanted
from bertdata.examples.masking.prepared_settings import MaskingRules
from bertdata.examples.masking.reference import (
    Masked,
    Starts,
    Word,
    apply_replacements,
    draw_replacement_at_load,
    draw_replacement_in_file,
    shuffle_lazily,
    words_of,
)
from bertdata.examples.random_stream import RandomStream


def compute_ngram_limits(longest: int, *, favors_shorter: bool) -> list[float]:
    """Return the cumulative probabilities of n-grams of 1 to ``longest`` words.

    With favors_shorter, n words have a probability proportional to 1/n. Otherwise the probabilities are in
    reverse order, so longer n-grams are likelier. For up to 7 words the numbers are exactly those with which
    NumPy's ``choice`` compares its draw.
    """
    shares = _normalise_shares([1 / n for n in range(1, longest + 1)])
    if not favors_shorter:
        shares.reverse()
    limits = list(accumulate(_normalise_shares(shares)))
    return [limit / limits[-1] for limit in limits]


def _normalise_shares(shares: list[float]) -> list[float]:
    """Divide the shares by their sum.

    The sum is computed from the first share on. Since Python 3.12 ``sum`` corrects rounding errors, which
    gives other last digits.
    """
    *_, whole = accumulate(shares)
    return [share / whole for share in shares]


class NgramLengths:
    """Draws the numbers of words of n-grams. random: function that returns the next number in [0, 1)."""

    def __init__(self, limits: Sequence[float], random: Callable[[], float]) -> None:
        self._limits, self._random = limits, random

    def draw(self) -> int:
        """Draw the number of words of the next n-gram."""
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
    """Mask n-grams of words in an example that is written to a file.

    The draws are, in this order:
    1. a shuffle of the words
    2. the length of each n-gram (from the stream of ``lengths``)
    3. for each masked position, in the order of choice, what replaces it
    4. another shuffle of the words
    permutes: also choose other n-grams, as many as were masked, and shuffle the ids at their positions.
    """
    if rules.settings.masked_lm_prob == 0:
        return Masked(original, [], [])
    wanted, firsts = compute_masks_wanted(rules.settings, len(original)), list(range(len(words)))
    # In the shuffled order, each word is the first word of an n-gram.
    stream.shuffle(firsts)
    chosen = _choose_ngrams(firsts, words, wanted, (), lengths)
    replaced = {place: draw_replacement_in_file(original[place], rules, stream) for place in chosen}
    # ALBERT's program shuffles again even if it does not permute. Without this shuffle, all later draws would
    # differ.
    stream.shuffle(firsts)
    if permutes:
        others = sorted(_choose_ngrams(firsts, words, wanted, chosen, lengths))
        sources = others.copy()
        stream.shuffle(sources)
        replaced |= {place: original[source] for place, source in zip(others, sources, strict=True)}
    return apply_replacements(original, replaced)


def mask_ngrams_at_load(
    original: list[int],
    rate: float,
    limits: Sequence[float],
    rules: MaskingRules,
    stream: CounterStream,
    starts: Starts = None,
) -> Masked:
    """Mask n-grams of words in an example that was loaded without masks.

    Until enough positions are masked, two numbers are drawn: a first word among the words that are left, and
    the
    length of its n-gram (32 bits). Then a replacement is drawn for each position, in ascending order.

    rate: share of ids to mask.
    starts: for each id 1 if a word starts there, else 0. None if the vocabulary's ids show it.
    """
    words = words_of(original, rules, starts)
    lengths = NgramLengths(limits, lambda: stream.word() / (1 << 32))
    firsts = shuffle_lazily(list(range(len(words))), stream)
    chosen = _choose_ngrams(
        firsts, words, compute_masks_wanted(rules.settings, len(original), rate), (), lengths
    )
    return apply_replacements(
        original,
        {place: draw_replacement_at_load(original[place], rules, stream) for place in sorted(chosen)},
    )


def _choose_ngrams(
    firsts: Iterable[int], words: Sequence[Word], wanted: int, taken: Iterable[int], lengths: NgramLengths
) -> list[int]:
    """Choose n-grams and return their positions, at most ``wanted``, in the order in which they are chosen.

    firsts: indices of the words that can be the first of an n-gram, in the order to try.
    taken: positions that cannot be chosen.
    """
    covered, chosen, left = set(taken), list[int](), iter(firsts)
    while len(chosen) < wanted and (first := next(left, None)) is not None:
        # A length is drawn for every first word, even if its n-gram is not used in the end.
        longest = lengths.draw()
        # An n-gram with too many positions loses words at its end. If even its first word is too long, the
        # n-gram is empty and adds nothing.
        shortened = (list(chain(*words[first : first + count])) for count in range(longest, 0, -1))
        ngram = next((one for one in shortened if len(chosen) + len(one) <= wanted), [])
        # N-grams never overlap.
        if covered.isdisjoint(ngram):
            covered.update(ngram)
            chosen += ngram
    return chosen
