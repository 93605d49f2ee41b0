"""The readable twin of dynamic masks; of _native/examples/dynamic_masking.h.

An example's stream is drawn from in this order: what is masked, then, for each masked position from the first
to the last, what stands there.
"""

from bertdata.examples.dynamic_masking.counter_stream import CounterStream
from bertdata.examples.dynamic_masking.settings import MaskingRules, limit_of
from bertdata.examples.masking import Masked, share_of

Word = list[int]
"""Positions that are masked together."""


def draw_masks(original: list[int], rate: float, rules: MaskingRules, stream: CounterStream) -> Masked:
    """The unmasked ids with masks; ``rate`` of them, or of its candidates, as the rules say."""
    words = _candidates(original, rules)
    if rules.draws_counts:
        taken = _draw_each(words, rate, rules.most, stream)
    else:
        taken = _take(words, share_of(len(original), rate, rules.most), stream)
    positions = sorted(position for word in taken for position in word)
    ids = list(original)
    for position in positions:
        ids[position] = _replacement(original[position], rules, stream)
    return Masked(ids, positions, [original[position] for position in positions])


def _candidates(ids: list[int], rules: MaskingRules) -> list[Word]:
    """Words of positions, in order; a special id belongs to none, and no word goes on behind it."""
    words: list[Word] = []
    for position, token in enumerate(ids):
        if rules.is_special[token]:
            continue
        follows = words and words[-1][-1] == position - 1
        if rules.whole_words and follows and rules.continues_word[token]:
            words[-1].append(position)
        else:
            words.append([position])
    return words


def _take(words: list[Word], wanted: int, stream: CounterStream) -> list[Word]:
    """Words in random order, until ``wanted`` positions are taken; a word that would exceed them is left.

    The order is a shuffle from the front, drawn as far as it is needed: the next word is drawn from all that
    are left.
    """
    words, taken, masked = list(words), [], 0
    for place in range(len(words)):
        if masked == wanted:
            break
        other = place + stream.below(len(words) - place)
        words[place], words[other] = words[other], words[place]
        if masked + len(words[place]) <= wanted:
            taken.append(words[place])
            masked += len(words[place])
    return taken


def _draw_each(words: list[Word], rate: float, most: int, stream: CounterStream) -> list[Word]:
    """Each word with a probability of ``rate``; of too many as many at random as there is room for."""
    limit = limit_of(rate)
    drawn = [word for word in words if stream.word() < limit]
    return drawn if sum(map(len, drawn)) <= most else _take(drawn, most, stream)


def _replacement(original: int, rules: MaskingRules, stream: CounterStream) -> int:
    draw = stream.word()
    if draw < rules.mask_limit:
        return rules.mask
    if draw < rules.random_limit:
        return rules.replacements[stream.below(len(rules.replacements))]
    return original
