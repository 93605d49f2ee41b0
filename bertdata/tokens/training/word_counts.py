"""Words of a text and how often each occurs: what a vocabulary is learned from."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import md5

Split = Callable[[str], Iterable[str]]
"""Splits a piece of text into its words."""

_CACHED_UNITS = 1 << 16
_CACHED_LENGTH = 64
"""Longer units are seldom met again, and a cache of them would take memory."""

_SEQUENCE_CHARACTERS = 1 << 13


@dataclass(frozen=True, kw_only=True, slots=True)
class WordCounts:
    """The words of a text by how often they occur.

    limit: characters of the longest word that is counted, None for any. left_out: how many longer words the
    text has; longest: the longest of them. special: how often the text holds each special token, written
    out. divisor: the counts are those of one word in so many (``thin``).
    """

    counts: Mapping[str, int]
    limit: int | None = None
    left_out: int = 0
    longest: str = ""
    special: Mapping[str, int]
    divisor: int = 1

    @property
    def words(self) -> int:
        """The number of words, each as often as it occurs."""
        return sum(self.counts.values())


OnCounted = Callable[[WordCounts], None]
"""Told what is learned from, before that begins."""


def ignore_counts(counts: WordCounts) -> None:
    """Tell nobody."""


def count_words(
    slices: Iterable[str],
    units: Split,
    split: Split,
    *,
    limit: int | None = None,
    special: Sequence[str] = (),
) -> WordCounts:
    """Count the words of a text that comes in slices.

    units: cuts a slice where no word goes on. split: cuts a unit into words; most units have been met before,
    and are not split again. Memory grows with the number of distinct words, not with the text.
    """
    cached = lru_cache(_CACHED_UNITS)(lambda unit: tuple(split(unit)))
    counts: Counter[str] = Counter()
    found: Counter[str] = Counter()
    left_out, longest = 0, ""
    for text in slices:
        for token in special:
            found[token] += text.count(token)
        for unit, times in Counter(units(text)).items():
            for word in cached(unit) if len(unit) <= _CACHED_LENGTH else split(unit):
                if limit is None or len(word) <= limit:
                    counts[word] += times
                else:
                    left_out += times
                    longest = max(longest, word, key=lambda one: (len(one), one))
    return WordCounts(
        counts=counts,
        limit=limit,
        left_out=left_out,
        longest=longest,
        special={token: times for token, times in found.items() if times},
    )


def thin(words: WordCounts, most_characters: int) -> WordCounts:
    """Return the counts of a sample of the text that has at most so many characters, about.

    Of each word one occurrence in ``divisor`` stays. Where the division leaves a rest, the word's md5 decides
    whether one more stays, so that a rare word stays as often as its share of the text asks, and the sample
    is the same whatever the order of the text. A character that would be lost stays as a word of its own.
    """
    characters = sum(times * (len(word) + 1) for word, times in words.counts.items())
    divisor = -(-characters // most_characters)
    if divisor <= 1:
        return words
    kept: dict[str, int] = {}
    for word, times in words.counts.items():
        whole, rest = divmod(times, divisor)
        if (
            rest
            and int.from_bytes(md5(word.encode(), usedforsecurity=False).digest(), "big") % divisor < rest
        ):
            whole += 1
        if whole:
            kept[word] = whole
    for character in set().union(*words.counts) - set().union(*kept):
        kept[character] = 1
    return replace(words, counts=kept, divisor=divisor)


def repeat_words(counts: Mapping[str, int], spell: Callable[[str], str] = str) -> Iterator[str]:
    """Yield each word as often as it occurs, many in a text with blanks between, in an order of their own.

    The tokenizers library takes no counts; it counts again. spell: the word as the library is to see it.
    """
    for word in sorted(counts):
        spelt = spell(word)
        at_a_time = max(1, _SEQUENCE_CHARACTERS // (len(spelt) + 1))
        whole, rest = divmod(counts[word], at_a_time)
        if whole:
            text = " ".join([spelt] * at_a_time)
            for _ in range(whole):
                yield text
        if rest:
            yield " ".join([spelt] * rest)
