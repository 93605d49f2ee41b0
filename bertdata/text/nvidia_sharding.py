"""NVIDIA's text stage: articles are dealt out to shards by their numbers of sentences, without chance.

The shards of both kinds take turns, the training shards first. Each takes the last article of the
largest size that still fits below its kind's nominal size; shards above the median of their kind sit
out the round. When four rounds in a row place nothing, training shards may grow by one sentence.
"""

from array import array
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from bertdata.errors import InputError

_HISTORY_ROUNDS = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardedArticles:
    """The numbers of the articles in each shard, in the order they are written."""

    training: list[list[int]]
    test: list[list[int]]


def distribute(
    sentences: Sequence[int], *, training_shards: int, test_shards: int, test_fraction: float
) -> ShardedArticles:
    """Shards for articles 0, 1, 2, ... of so many sentences each.

    InputError when there are fewer articles than shards, and for an article without sentences, which
    no shard ever takes: the original would go round for ever.
    """
    _check_articles(sentences, training_shards + test_shards)
    total = sum(sentences)
    training_total = int((1 - test_fraction) * total)
    stacks = _Stacks(sentences)
    training = _Kind(shards=training_shards, nominal=training_total // training_shards)
    test = _Kind(shards=test_shards, nominal=(total - training_total) // test_shards)
    for kind in (training, test):
        kind.place_first_articles(stacks)
    history: deque[int] = deque(maxlen=_HISTORY_ROUNDS)
    while stacks.unplaced:
        for kind in (training, test):
            kind.place_round(stacks)
        history.append(stacks.unplaced)
        if len(set(history)) == 1:  # true after the first round, whatever it placed
            training.nominal += 1
    return ShardedArticles(training=training.articles, test=test.articles)


def _check_articles(sentences: Sequence[int], shards: int) -> None:
    if len(sentences) < shards:
        raise InputError(
            f"{len(sentences)} articles found, expected at least one for each of {shards} shards; "
            "ask for fewer training and test shards"
        )
    if min(sentences) < 1:
        empty = next(number for number, count in enumerate(sentences) if count < 1)
        raise InputError(
            f"article {empty} (from 0) has no sentence, so no shard can take it, expected one or more"
        )


class _Stacks:
    """The unplaced articles by number of sentences, the last article of a size on top."""

    def __init__(self, sentences: Sequence[int]) -> None:
        self.unplaced = len(sentences)
        self.largest = max(sentences)
        self._stacks = [array("Q") for _ in range(self.largest + 1)]
        for article, count in enumerate(sentences):
            self._stacks[count].append(article)
        # Emptied stacks stay empty: all sizes between a size and the one below[size] are without articles.
        self._below = [max(size - 1, 0) for size in range(self.largest + 1)]

    def pop(self, most: int) -> tuple[int, int] | None:
        """(article, its size) from the largest stack of at most ``most`` sentences that holds one."""
        size = self._largest_filled(min(most, self.largest))
        if size <= 0:
            return None
        self.unplaced -= 1
        return self._stacks[size].pop(), size

    def _largest_filled(self, size: int) -> int:
        """The largest size up to this one whose stack holds an article, 0 for none."""
        stacks, below = self._stacks, self._below
        while size > 0 and not stacks[size]:
            if not stacks[below[size]]:
                below[size] = below[below[size]]  # so that the next search is shorter
            size = below[size]
        return size


@dataclass(kw_only=True, slots=True)
class _Kind:
    """The training shards or the test shards: their articles, sentence counts and nominal size."""

    shards: int
    nominal: int
    articles: list[list[int]] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    def place_first_articles(self, stacks: _Stacks) -> None:
        """Give each shard the largest article left. The nominal size grows to hold it."""
        for _ in range(self.shards):
            placed = stacks.pop(stacks.largest)
            assert placed is not None, "there are as many articles as shards"
            article, size = placed
            self.articles.append([article])
            self.counts.append(size)
            self.nominal = max(self.nominal, size)

    def place_round(self, stacks: _Stacks) -> None:
        """Give each shard one article at most. Counts and median are those of the round's start."""
        middle = median(self.counts)
        for shard, count in enumerate(self.counts):
            if count > middle:
                continue
            placed = stacks.pop(self.nominal - count)
            if placed is not None:
                article, size = placed
                self.articles[shard].append(article)
                self.counts[shard] = count + size
