"""Masked words in pure Python, for files and for loading.

The same algorithms exist in C++ in _native/examples/bert.h (masks in files) and dynamic_masking.h (masks at
load). Both choose words of an example in random order until enough positions are masked (Devlin et al. 2018).
They differ in their random stream and in the order of draws:

in files    All words are shuffled. Then each masked position, in the order in which it was chosen, draws
            once or twice to decide what replaces it, and once more if it is a random token.
at load     Words are drawn one by one, no more than needed. Then each masked position, in ascending order,
            draws once to decide what replaces it, and once more if it is a random token.

The order for files is that of the original program, so the files have the same bytes. Its drawback is that
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
"""Positions that are masked together: the position of one id, or the positions of a word's pieces."""

Starts = Sequence[int] | None
"""For each id of an example 1 if a word starts there, else 0. None if the vocabulary's ids say so."""


@dataclass(frozen=True, slots=True)
class Masked:
    """An example's ids with masks applied, its masked positions (ascending) and their original ids."""

    ids: list[int]
    positions: list[int]
    labels: list[int]


def mask_in_file(
    original: list[int], rules: MaskingRules, stream: RandomStream, starts: Starts = None
) -> Masked:
    """Draw the masks of an example that is written to a file.

    starts: for each id 1 if a word starts there, else 0. None if the vocabulary's ids show it.
    """
    words = words_of(original, rules, starts)
    # All words are shuffled, even if only a few are masked, because the number of random draws must be the
    # same as in the original program.
    stream.shuffle(words)
    taken = _take_words(iter(words), compute_masks_wanted(rules.settings, len(original)))
    # Replacements are drawn in the order of choice, so this must not iterate over sorted positions.
    replaced = {
        position: draw_replacement_in_file(original[position], rules, stream)
        for position in chain.from_iterable(taken)
    }
    return apply_replacements(original, replaced)


def mask_at_load(
    original: list[int], rate: float, rules: MaskingRules, stream: CounterStream, starts: Starts = None
) -> Masked:
    """Mask an example that was loaded without masks.

    rate: share of its ids to mask, or probability of each word if ``mask_counts`` is "drawn".
    starts: for each id 1 if a word starts there, else 0. None if the vocabulary's ids show it.
    """
    words = words_of(original, rules, starts)
    if rules.settings.mask_counts == "drawn":
        taken = _draw_each_word(words, rate, rules.settings.max_predictions_per_seq, stream)
    else:
        # shuffle_lazily draws only for the words that _take_words consumes.
        taken = _take_words(
            shuffle_lazily(words, stream), compute_masks_wanted(rules.settings, len(original), rate)
        )
    # In ascending order, which is part of the specification: the kernel draws in the same order.
    replaced = {
        position: draw_replacement_at_load(original[position], rules, stream)
        for position in sorted(chain.from_iterable(taken))
    }
    return apply_replacements(original, replaced)


def words_of(ids: list[int], rules: MaskingRules, starts: Starts = None) -> list[Word]:
    """Return the words of an example in order. Each word is a list of positions that are masked together.

    Ids that are never masked belong to no word. Unless whole words are masked, every other id is a word. With
    whole words, an id joins the word before it if it continues that word. Whether an id continues a word is
    read from ``starts`` if it is not None, else from the vocabulary. If the beginning of a word was cut off,
    the remaining ids are a word.
    """
    words: list[Word] = []
    # "[CLS] light ##house ##s" -> [[1, 2, 3]] with whole words, else [[1], [2], [3]]
    for position, token in enumerate(ids):
        if rules.never_masked[token]:
            continue
        is_beside = bool(words) and words[-1][-1] == position - 1
        if starts is None:
            # With joins_over_special a piece continues the last word even if a special token is between
            # them: "light [SEP] ##house" is one word. This is how the original programs behave in files.
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
    """Take words until ``wanted`` positions are taken.

    A word is skipped if it has more positions than are still wanted.
    """
    taken: list[Word] = []
    while wanted and (word := next(words, None)) is not None:
        if len(word) <= wanted:
            taken.append(word)
            wanted -= len(word)
    return taken


def shuffle_lazily(items: list[Item], stream: CounterStream) -> Iterator[Item]:
    """Yield the items in random order, drawing only for the items that are consumed.

    This is a shuffle from the front: each step draws one of the items that are left.
    """
    items = list(items)
    for place in range(len(items)):
        other = place + stream.below(len(items) - place)
        items[place], items[other] = items[other], items[place]
        yield items[place]


def _draw_each_word(words: list[Word], rate: float, most: int, stream: CounterStream) -> list[Word]:
    """Choose each word with a probability of ``rate``.

    If that gives too many positions, choose among these words.
    """
    limit = compute_draw_limit(rate)
    drawn = [word for word in words if stream.word() < limit]
    return drawn if sum(map(len, drawn)) <= most else _take_words(shuffle_lazily(drawn, stream), most)


def draw_replacement_in_file(original: int, rules: MaskingRules, stream: RandomStream) -> int:
    """Draw the id that replaces a masked id in a file."""
    if stream.random() < rules.settings.mask_share:
        return rules.mask
    if stream.random() < rules.settings.kept_of_unchanged:
        return original
    return rules.replacements[stream.below(len(rules.replacements))]


def draw_replacement_at_load(original: int, rules: MaskingRules, stream: CounterStream) -> int:
    """Draw the id that replaces a masked id at load time."""
    draw = stream.word()
    if draw < rules.mask_limit:
        return rules.mask
    if draw < rules.random_limit:
        return rules.replacements[stream.below(len(rules.replacements))]
    return original


def apply_replacements(original: list[int], replaced: dict[int, int]) -> Masked:
    """Return the example with replaced ids and its masks. replaced: the new id by masked position."""
    positions = sorted(replaced)
    ids = [replaced.get(position, token) for position, token in enumerate(original)]
    return Masked(ids, positions, [original[position] for position in positions])
