"""Counts the words of a text. Vocabularies are learned from these counts."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import md5

Split = Callable[[str], Iterable[str]]
"""Function that splits a text into its words."""

_CACHED_UNITS = 1 << 16
_CACHED_LENGTH = 64
"""Longest unit (piece of text between blanks) in characters that is cached. Longer units rarely occur again
and would take much memory.
"""

_SEQUENCE_CHARACTERS = 1 << 13


@dataclass(frozen=True, kw_only=True, slots=True)
class WordCounts:
    """The words of a text and their counts.

    counts: number of occurrences of each word.
    limit: longest word in characters that is counted. None means no limit.
    left_out: number of longer words in the text. longest: the longest of them.
    special: number of occurrences of each special token in the text.
    divisor: 1 if the counts are of the whole text, n if they are of a sample with every n-th word.
    """

    counts: Mapping[str, int]
    limit: int | None = None
    left_out: int = 0
    longest: str = ""
    special: Mapping[str, int]
    divisor: int = 1

    @property
    def words(self) -> int:
        """Number of words in the text, where every occurrence counts."""
        return sum(self.counts.values())


OnCounted = Callable[[WordCounts], None]
"""Callback that gets the counts before learning begins."""


def ignore_counts(counts: WordCounts) -> None:
    """Do nothing. This is the default of the callback that gets the word counts."""


def count_words(
    slices: Iterable[str],
    units: Split,
    split: Split,
    *,
    limit: int | None = None,
    special: Sequence[str] = (),
) -> WordCounts:
    """Count the words of a text that comes in slices.

    Memory grows with the number of distinct words, not with the length of the text.
    units: splits a slice into units, at positions where no word continues.
    split: splits a unit into words. It is slow, so results for short units are cached.
    limit: longest word in characters to count.
    special: special tokens whose occurrences in the text are counted.
    """
    cached = lru_cache(_CACHED_UNITS)(lambda unit: tuple(split(unit)))
    counts: Counter[str] = Counter()
    found: Counter[str] = Counter()
    left_out, longest = 0, ""
    for text in slices:
        for token in special:
            found[token] += text.count(token)
        # Count the slice's units first, then split each distinct unit only once:
        # "the cat the dog" -> the 2, cat 1, dog 1. The cache of a limited size saves work between slices.
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


def sample_words(words: WordCounts, most_characters: int) -> WordCounts:
    """Return the counts of a sample of the text with about ``most_characters`` characters at most.

    Of every ``divisor`` occurrences of a word, one is kept. If the count does not divide evenly, the word's
    md5 decides whether one more is kept, with a probability equal to the remaining share. Rare words are thus
    kept as often as expected, and the sample does not depend on the order of the text. A character that would
    be lost is added as a word.
    """
    characters = sum(times * (len(word) + 1) for word, times in words.counts.items())
    divisor = -(-characters // most_characters)
    if divisor <= 1:
        return words
    kept: dict[str, int] = {}
    for word, times in words.counts.items():
        # divisor 4: a word with 10 occurrences keeps 2, and a third if its md5 mod 4 is 0 or 1.
        whole, rest = divmod(times, divisor)
        if (
            rest
            and int.from_bytes(md5(word.encode(), usedforsecurity=False).digest(), "big") % divisor < rest
        ):
            whole += 1
        if whole:
            kept[word] = whole
    # Every character of the text must be in the vocabulary, or it would become the unknown token.
    for character in set().union(*words.counts) - set().union(*kept):
        kept[character] = 1
    return replace(words, counts=kept, divisor=divisor)


def repeat_words(counts: Mapping[str, int], spell: Callable[[str], str] = str) -> Iterator[str]:
    """Yield texts that contain each word as often as it occurs, in sorted order and separated by blanks.

    The library ``tokenizers`` cannot be given counts, so it has to count the words in this text again.
    spell: function that returns the spelling of a word in the text for ``tokenizers``.
    """
    for word in sorted(counts):
        spelt = spell(word)
        # Texts of about _SEQUENCE_CHARACTERS characters, made once for each word and yielded repeatedly.
        at_a_time = max(1, _SEQUENCE_CHARACTERS // (len(spelt) + 1))
        whole, rest = divmod(counts[word], at_a_time)
        if whole:
            text = " ".join([spelt] * at_a_time)
            for _ in range(whole):
                yield text
        if rest:
            yield " ".join([spelt] * rest)
