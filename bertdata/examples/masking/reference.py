"""Masking of words in pure Python, for examples in files and for examples that are being loaded.

The same algorithms exist in C++ in _native/examples/bert.h (in files) and dynamic_masking.h (at load). Both
choose words of an example in random order until enough positions are masked (Devlin et al. 2018). They differ
in their random stream and in the order of random draws:

in files: All words are shuffled. Then each masked position, in the order in which it was chosen, draws once
or twice to decide what replaces it, and once more if it is a random token.
at load: Words are drawn one by one, no more than needed. Then each masked position, in ascending order, draws
once to decide what replaces it, and once more if it is a random token.

In files the order is that of BERT's original program, so the files have the same bytes. Its drawback is that
all examples share one random stream, so they must be masked in order. At load each example has a separate
random stream and can be masked independently.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from bertdata.examples.dynamic_masking.counter_stream import CounterStream
from bertdata.examples.masking.mask_count import compute_masks_wanted
from bertdata.examples.masking.prepared_settings import MaskingRules, compute_draw_limit
from bertdata.examples.random_stream import RandomStream

Item = TypeVar("Item")
Word = list[int]
"""A word to mask, as the list of its ids' positions. If words are not masked as a whole, each id is a word.
"""

Starts = Sequence[int] | None
"""For each id of an example, 1 if a word starts there, else 0. None if the vocabulary shows where words
start.
"""


@dataclass(frozen=True, slots=True)
class Masked:
    """An example after masking.

    ids: ids with masks applied.
    positions: masked positions, ascending.
    labels: original id at each masked position.
    """

    ids: list[int]
    positions: list[int]
    labels: list[int]


def mask_in_file(
    original: list[int], rules: MaskingRules, stream: RandomStream, starts: Starts = None
) -> Masked:
    """Draw the masks of an example that is written to a file.

    starts: for each id 1 if a word starts there, else 0. None if the vocabulary shows where words start.
    """
    words = words_of(original, rules, starts)
    # All words are shuffled, even if only a few are masked, because the number of random draws must be the
    # same as in BERT's original program.
    stream.shuffle(words)
    taken = _take_words(iter(words), compute_masks_wanted(rules.settings, len(original)))
    # Replacements are drawn in the order in which the positions were chosen, so they must not be sorted here.
    replaced = {
        position: draw_replacement_in_file(original[position], rules, stream)
        for position in chain.from_iterable(taken)
    }
    return apply_replacements(original, replaced)


def mask_at_load(
    original: list[int], rate: float, rules: MaskingRules, stream: CounterStream, starts: Starts = None
) -> Masked:
    """Draw the masks of an example that is being loaded.

    rate: share of the ids to mask. If ``mask_counts`` is "drawn", the probability of each word.
    starts: for each id 1 if a word starts there, else 0. None if the vocabulary shows where words start.
    """
    words = words_of(original, rules, starts)
    if rules.settings.mask_counts == "drawn":
        taken = _draw_each_word(words, rate, rules.settings.max_predictions_per_seq, stream)
    else:
        # Words are shuffled lazily: random numbers are drawn only for the words that _take_words consumes.
        taken = _take_words(
            shuffle_lazily(words, stream), compute_masks_wanted(rules.settings, len(original), rate)
        )
    # Replacements are drawn in ascending order of position, because the C++ kernel draws in this order.
    replaced = {
        position: draw_replacement_at_load(original[position], rules, stream)
        for position in sorted(chain.from_iterable(taken))
    }
    return apply_replacements(original, replaced)


def words_of(ids: list[int], rules: MaskingRules, starts: Starts = None) -> list[Word]:
    """Return the words of an example in order. Each word is a list of positions that are masked together.

    Ids that are never masked belong to no word. If words are not masked as a whole, every other id is a word.
    Otherwise an id joins the word before it if it continues that word. ``starts`` says so, or the vocabulary
    if ``starts`` is None. If the beginning of a word was cut off, its remaining ids are a word.
    """
    words: list[Word] = []
    # For example, "[CLS] light ##house ##s" gives [[1, 2, 3]] with whole words, else [[1], [2], [3]].
    for position, token in enumerate(ids):
        if rules.never_masked[token]:
            continue
        is_beside = bool(words) and words[-1][-1] == position - 1
        if starts is None:
            # With joins_over_special a piece continues the last word even if a special token is between them,
            # so "light [SEP] ##house" is one word. The original programs of BERT and ALBERT mask examples in
            # files in this way.
            follows = is_beside or (bool(words) and rules.settings.joins_over_special)
            joins = follows and rules.continues_word[token]
        else:
            joins = is_beside and not starts[position]
        if rules.settings.whole_word_mask and joins:
            words[-1].append(position)
        else:
            words.append([position])
    return words


def _take_words(words: Iterator[Word], wanted: int) -> list[Word]:
    """Take words from the iterator until they have ``wanted`` positions, and return them.

    A word that has more positions than are still wanted is skipped.
    """
    taken: list[Word] = []
    while wanted and (word := next(words, None)) is not None:
        if len(word) <= wanted:
            taken.append(word)
            wanted -= len(word)
    return taken


def shuffle_lazily(items: list[Item], stream: CounterStream) -> Iterator[Item]:
    """Yield the items in random order. A random number is drawn only for each item that is consumed.

    The items are shuffled from the front: each step draws one of the items that are left.
    """
    items = list(items)
    for place in range(len(items)):
        other = place + stream.below(len(items) - place)
        items[place], items[other] = items[other], items[place]
        yield items[place]


def _draw_each_word(words: list[Word], rate: float, most: int, stream: CounterStream) -> list[Word]:
    """Choose each word with a probability of ``rate``.

    If these words have more than ``most`` positions, choose among them at random.
    """
    limit = compute_draw_limit(rate)
    drawn = [word for word in words if stream.word() < limit]
    return drawn if sum(map(len, drawn)) <= most else _take_words(shuffle_lazily(drawn, stream), most)


def draw_replacement_in_file(original: int, rules: MaskingRules, stream: RandomStream) -> int:
    """Draw the id that stands at a masked position of an example in a file: [MASK], the original or a random
    id.
    """
    if stream.random() < rules.settings.mask_share:
        return rules.mask
    if stream.random() < rules.settings.kept_of_unchanged:
        return original
    return rules.replacements[stream.below(len(rules.replacements))]


def draw_replacement_at_load(original: int, rules: MaskingRules, stream: CounterStream) -> int:
    """Draw the id that stands at a masked position of a loaded example: [MASK], a random id or the
    original.
    """
    draw = stream.word()
    if draw < rules.mask_limit:
        return rules.mask
    if draw < rules.random_limit:
        return rules.replacements[stream.below(len(rules.replacements))]
    return original


def apply_replacements(original: list[int], replaced: dict[int, int]) -> Masked:
    """Replace ids of an example and return it with its masks.

    replaced: the new id of each masked position.
    """
    positions = sorted(replaced)
    ids = [replaced.get(position, token) for position, token in enumerate(original)]
    return Masked(ids, positions, [original[position] for position in positions])
