"""The readable twin of masks: of those in files (_native/examples/bert.h) and at load (dynamic_masking.h).

Both choose words of an example, in a random order, until enough positions are masked (Devlin et al. 2018).
They differ in their stream and in the order of draws:

in files    all words are shuffled; then each position, in the order in which it was chosen, draws once or
            twice, and a third time for a random token
at load     words are drawn one by one, no more than needed; then each position, from the first to the last,
            draws once, and again for a random token
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from bertdata.examples.dynamic_masking.counter_stream import CounterStream
from bertdata.examples.masking.mask_count import masks_wanted
from bertdata.examples.masking.prepared_settings import MaskingRules, limit_of
from bertdata.examples.random_stream import RandomStream

Item = TypeVar("Item")
Word = list[int]
"""Positions that are masked together: one, or those of a word's pieces."""

Starts = Sequence[int] | None
"""For each id of an example 1 where a word starts, else 0. None where the vocabulary tells it by the id."""


@dataclass(frozen=True, slots=True)
class Masked:
    """An example's ids with masks applied, the masked positions, ascending, and their original ids."""

    ids: list[int]
    positions: list[int]
    labels: list[int]


def mask_in_file(
    original: list[int], rules: MaskingRules, stream: RandomStream, starts: Starts = None
) -> Masked:
    """The ids with the masks of an example in a file. starts: as of words_of."""
    words = words_of(original, rules, starts)
    stream.shuffle(words)
    taken = _take(iter(words), masks_wanted(rules.settings, len(original)))
    replaced = {
        position: replacement_in_file(original[position], rules, stream)
        for position in chain.from_iterable(taken)
    }
    return with_replaced(original, replaced)


def mask_at_load(
    original: list[int], rate: float, rules: MaskingRules, stream: CounterStream, starts: Starts = None
) -> Masked:
    """The unmasked ids with masks: ``rate`` of them, or of its candidates, as the settings say.

    starts: as of words_of.
    """
    words = words_of(original, rules, starts)
    if rules.settings.mask_counts == "drawn":
        taken = _draw_each(words, rate, rules.settings.max_predictions_per_seq, stream)
    else:
        taken = _take(random_order(words, stream), masks_wanted(rules.settings, len(original), rate))
    replaced = {
        position: replacement_at_load(original[position], rules, stream)
        for position in sorted(chain.from_iterable(taken))
    }
    return with_replaced(original, replaced)


def words_of(ids: list[int], rules: MaskingRules, starts: Starts = None) -> list[Word]:
    """The words of an example's ids, in order: each the positions that are masked together.

    An id that is never masked belongs to none. Without whole words each other id is one by itself. With them
    an id that continues a word joins the word before it: by the vocabulary where starts is None, else where
    its bit is 0 and the id before it belongs to a word. So what an example holds of a word whose start it
    does not hold is a word by itself.
    """
    words: list[Word] = []
    for position, token in enumerate(ids):
        if rules.never_masked[token]:
            continue
        is_beside = bool(words) and words[-1][-1] == position - 1
        if starts is None:
            follows = is_beside or (bool(words) and rules.settings.joins_over_special)
            joins = follows and rules.continues_word[token]
        else:
            joins = is_beside and not starts[position]
        if rules.settings.whole_word_mask and joins:
            words[-1].append(position)
        else:
            words.append([position])
    return words


def _take(words: Iterator[Word], wanted: int) -> list[Word]:
    """Words until ``wanted`` positions are taken. A word that would exceed them is left."""
    taken: list[Word] = []
    while wanted and (word := next(words, None)) is not None:
        if len(word) <= wanted:
            taken.append(word)
            wanted -= len(word)
    return taken


def random_order(items: list[Item], stream: CounterStream) -> Iterator[Item]:
    """Shuffle from the front, as far as items are taken: the next one is one of all that are left."""
    items = list(items)
    for place in range(len(items)):
        other = place + stream.below(len(items) - place)
        items[place], items[other] = items[other], items[place]
        yield items[place]


def _draw_each(words: list[Word], rate: float, most: int, stream: CounterStream) -> list[Word]:
    """Each word with a probability of ``rate``. Of too many as many at random as there is room for."""
    limit = limit_of(rate)
    drawn = [word for word in words if stream.word() < limit]
    return drawn if sum(map(len, drawn)) <= most else _take(random_order(drawn, stream), most)


def replacement_in_file(original: int, rules: MaskingRules, stream: RandomStream) -> int:
    """The id that stands at a masked position of an example in a file."""
    if stream.random() < rules.settings.mask_share:
        return rules.mask
    if stream.random() < rules.settings.kept_of_unchanged:
        return original
    return rules.replacements[stream.below(len(rules.replacements))]


def replacement_at_load(original: int, rules: MaskingRules, stream: CounterStream) -> int:
    """The id that stands at a position masked at load."""
    draw = stream.word()
    if draw < rules.mask_limit:
        return rules.mask
    if draw < rules.random_limit:
        return rules.replacements[stream.below(len(rules.replacements))]
    return original


def with_replaced(original: list[int], replaced: dict[int, int]) -> Masked:
    """The ids with those that are replaced, by position."""
    positions = sorted(replaced)
    ids = [replaced.get(position, token) for position, token in enumerate(original)]
    return Masked(ids, positions, [original[position] for position in positions])
