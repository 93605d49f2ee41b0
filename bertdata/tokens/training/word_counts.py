"""Counts the words of a text. A vocabulary is learned from these counts and not from the text itself."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import md5

Split = Callable[[str], Iterable[str]]
"""Function that splits a text into its words."""

_CACHED_UNITS = 1 << 16
_CACHED_LENGTH = 64
"""Longest unit (piece of text between blanks) in characters whose words are cached.

Longer units rarely occur again, and would take much memory.
"""

_SEQUENCE_CHARACTERS = 1 << 13


@dataclass(frozen=True, kw_only=True, slots=True)
class WordCounts:
    """Counts of the words in a text.

    counts: number of occurrences of each word.
    limit: longest word in characters that is counted. None means no limit.
    left_out: number of occurrences of words that are longer than ``limit``.
    longest: the longest of these words.
    special: number of occurrences of each special token in the text.
    divisor: 1 if the whole text was counted. If ``counts`` is a sample of the text, the sample contains about
        one of every ``divisor`` words.
    """

    counts: Mapping[str, int]
    limit: int | None = None
    left_out: int = 0
    longest: str = ""
    special: Mapping[str, int]
    divisor: int = 1

    @property
    def words(self) -> int:
        """Total number of words, counting every occurrence."""
        return sum(self.counts.values())


OnCounted = Callable[[WordCounts], None]
"""Function that is called with the counts of all words before the learning begins."""


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
    """Count the words of a text that comes in slices (pieces of limited size).

    The memory in use grows with the number of different words, not with the length of the text.

    slices: the text.
    units: function that splits a slice into units, at positions that are never inside a word.
    split: function that splits a unit into words. It is slow, so its results for short units are cached.
    limit: longest word in characters that is counted. None means no limit.
    special: special tokens whose occurrences in the text are counted.
    """
    cached = lru_cache(_CACHED_UNITS)(lambda unit: tuple(split(unit)))
    counts: Counter[str] = Counter()
    found: Counter[str] = Counter()
    left_out, longest = 0, ""
    for text in slices:
        for token in special:
            found[token] += text.count(token)
        # Count the units of the slice first, and then split each different unit only once. For example, "the
        # cat the dog" has the units "the" (twice), "cat" and "dog". The cache saves work if a unit occurs
        # again in a later slice.
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
    """Return the counts of words in a sample that has about ``most_characters`` characters at most.

    Of every ``divisor`` occurrences of a word, one is kept. If the count of the word is not a multiple of
    ``divisor``, the md5 of the word decides whether one more occurrence is kept. Its probability is the
    remainder divided by ``divisor``, so rare words are kept as often as expected. The sample does not depend
    on the order of the text. If all words with a certain character are lost, the character is added as a
    word.
    """
    characters = sum(times * (len(word) + 1) for word, times in words.counts.items())
    divisor = -(-characters // most_characters)
    if divisor <= 1:
        return words
    kept: dict[str, int] = {}
    for word, times in words.counts.items():
        # For example, if the divisor is 4, a word with 10 occurrences keeps 2. It keeps a third one if its
        # md5 modulo 4 is less than 2.
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
    """Yield texts that contain each word as often as it occurs, separated by blanks and sorted by word.

    The library ``tokenizers`` does not accept counts, so it has to count the words in these texts again.

    spell: function that returns the spelling of a word in these texts.
    """
    for word in sorted(counts):
        spelt = spell(word)
        # Make a text of about _SEQUENCE_CHARACTERS characters once for each word, and yield it repeatedly.
        at_a_time = max(1, _SEQUENCE_CHARACTERS // (len(spelt) + 1))
        whole, rest = divmod(counts[word], at_a_time)
        if whole:
            text = " ".join([spelt] * at_a_time)
            for _ in range(whole):
                yield text
        if rest:
            yield " ".join([spelt] * rest)
