"""ALBERT's masks: n-grams of words are chosen in random order until enough positions are masked.

Source: Lan et al. 2020, section 3.1. In files the order of random draws is that of the program released with
the paper (pure-Python twin of _native/examples/bert.h). At load each example has its own random stream
(pure-Python twin of _native/examples/dynamic_masking.h).
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
    """Return the cumulative probabilities of the numbers of words in an n-gram, from 1 word to ``longest``.

    favors_shorter: True makes n words have a probability proportional to 1/n. False reverses the
        probabilities, so that longer n-grams are more probable.

    For up to 7 words the results are exactly the numbers with which NumPy's ``choice`` compares its draw.
    """
    shares = _normalise_shares([1 / n for n in range(1, longest + 1)])
    if not favors_shorter:
        shares.reverse()
    limits = list(accumulate(_normalise_shares(shares)))
    return [limit / limits[-1] for limit in limits]


def _normalise_shares(shares: list[float]) -> list[float]:
    """Divide the shares by their sum.

    The shares are added one after another, without ``sum``. Since Python 3.12 ``sum`` corrects rounding
    errors, so its last digits would differ from those of the original program.
    """
    *_, whole = accumulate(shares)
    return [share / whole for share in shares]


class NgramLengths:
    """Object that draws the number of words of each n-gram.

    limits: cumulative probabilities of the numbers of words.
    random: function that returns the next random number in [0, 1).
    """

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

    There are these random draws, in this order:
    1. a shuffle of the words
    2. the length of each n-gram, from the separate stream of ``lengths``
    3. for each masked position, in the order in which it was chosen, what replaces its id
    4. another shuffle of the words
    permutes: True also chooses other n-grams, with as many positions as were masked, and shuffles their ids.
    """
    if rules.settings.masked_lm_prob == 0:
        return Masked(original, [], [])
    wanted, firsts = compute_masks_wanted(rules.settings, len(original)), list(range(len(words)))
    # Each word is tried as the first word of an n-gram, in the shuffled order.
    stream.shuffle(firsts)
    chosen = _choose_ngrams(firsts, words, wanted, (), lengths)
    replaced = {place: draw_replacement_in_file(original[place], rules, stream) for place in chosen}
    # ALBERT's program shuffles again even if nothing is permuted. Without this shuffle, all later draws would
    # differ from those of the program.
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
    """Mask n-grams of words in an example that is being loaded.

    Until enough positions are masked, two random numbers are drawn: the first word of an n-gram, among the
    words that were not drawn yet, and the n-gram's number of words. Then a replacement is drawn for each
    masked position, in ascending order.

    rate: share of ids to mask.
    limits: cumulative probabilities of the numbers of words.
    starts: for each id 1 if a word starts there, else 0. None if the vocabulary shows where words start.
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
    """Choose n-grams. Return at most ``wanted`` positions, in the order in which they are chosen.

    firsts: indices of the words that may be the first of an n-gram, in the order in which they are tried.
    words: the positions of each word's ids.
    taken: positions that must not be chosen.
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
