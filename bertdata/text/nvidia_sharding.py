"""Last step of NVIDIA's text processing: distribute articles over shards with about equal numbers of
sentences.

The distribution is deterministic. It proceeds in rounds. In each round, first the training shards and then
the test shards take one article each. A shard takes the largest article with which it stays below its nominal
size, that is, the number of sentences up to which it is filled. All training shards have the same nominal
size, and so have all test shards. Among articles of the same size, the last one is taken.

Shards with more sentences than the median take nothing in the round. When four rounds in a row place no
article, the nominal size of the training shards grows by one sentence.
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
    """Result of the distribution: for each shard, the numbers of its articles in the order of writing."""

    training: list[list[int]]
    test: list[list[int]]


def distribute_articles(
    sentences: Sequence[int], *, training_shards: int, test_shards: int, test_fraction: float
) -> ShardedArticles:
    """Distribute the articles over training and test shards by NVIDIA's algorithm, described in this module.

    Raises InputError if there are fewer articles than shards. Also raises it for an article without
    sentences, because no shard would ever take it, and NVIDIA's program would loop forever.

    sentences: number of sentences of each article.
    test_fraction: approximate share of all sentences that goes to the test shards.
    """
    _check_articles(sentences, training_shards + test_shards)
    total = sum(sentences)
    training_total = int((1 - test_fraction) * total)
    stacks = _UnplacedArticles(sentences)
    training = _ShardSet(shards=training_shards, nominal=training_total // training_shards)
    test = _ShardSet(shards=test_shards, nominal=(total - training_total) // test_shards)
    for kind in (training, test):
        kind.place_first_articles(stacks)
    # Keep how many articles were left after each of the last four rounds. If these numbers are all equal, no
    # shard could take an article, so the nominal size must grow or the loop would never end.
    history: deque[int] = deque(maxlen=_HISTORY_ROUNDS)
    while stacks.unplaced:
        for kind in (training, test):
            kind.place_round(stacks)
        history.append(stacks.unplaced)
        # After the first round the history has a single entry, which counts as "all equal". So the nominal
        # size grows at once, without four rounds of waiting. NVIDIA's program has the same quirk.
        if len(set(history)) == 1:
            training.nominal += 1
    return ShardedArticles(training=training.articles, test=test.articles)


def _check_articles(sentences: Sequence[int], shards: int) -> None:
    """Raise InputError if there are fewer articles than shards, or if an article has no sentences."""
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


class _UnplacedArticles:
    """Articles that are in no shard yet, in a stack for each number of sentences. The last is on top."""

    def __init__(self, sentences: Sequence[int]) -> None:
        self.unplaced = len(sentences)
        self.largest = max(sentences)
        self._stacks = [array("Q") for _ in range(self.largest + 1)]
        for article, count in enumerate(sentences):
            self._stacks[count].append(article)
        # _below[size] is the next smaller size whose stack may still hold articles. All stacks between the
        # two are empty and stay empty, so a search skips them. At first _below[size] is size - 1. When the
        # stacks 3 and 4 are empty, _below[5] becomes 2.
        self._below = [max(size - 1, 0) for size in range(self.largest + 1)]

    def pop_largest(self, most: int) -> tuple[int, int] | None:
        """Take the last of the largest articles that have at most ``most`` sentences.

        Returns the article's number and its number of sentences. Returns None if no article is small enough.
        """
        size = self._find_filled_size(min(most, self.largest))
        if size <= 0:
            return None
        self.unplaced -= 1
        return self._stacks[size].pop(), size

    def _find_filled_size(self, size: int) -> int:
        """Return the largest number of sentences up to ``size`` for which articles are left.

        Returns 0 if there is none.
        """
        stacks, below = self._stacks, self._below
        while size > 0 and not stacks[size]:
            if not stacks[below[size]]:
                # The next smaller stack is empty too. Skip it from now on, so that later searches are shorter
                # (path halving).
                below[size] = below[below[size]]
            size = below[size]
        return size


@dataclass(kw_only=True, slots=True)
class _ShardSet:
    """Set of shards with the same nominal size: all training shards, or all test shards.

    shards: number of shards.
    nominal: number of sentences up to which a shard is filled. It may grow.
    articles: numbers of the articles in each shard.
    counts: number of sentences in each shard.
    """

    shards: int
    nominal: int
    articles: list[list[int]] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    def place_first_articles(self, stacks: _UnplacedArticles) -> None:
        """Give each shard the largest remaining article. The nominal size grows if an article exceeds it."""
        for _ in range(self.shards):
            placed = stacks.pop_largest(stacks.largest)
            assert placed is not None, "there are as many articles as shards"
            article, size = placed
            self.articles.append([article])
            self.counts.append(size)
            self.nominal = max(self.nominal, size)

    def place_round(self, stacks: _UnplacedArticles) -> None:
        """Give an article to each shard that does not have too many sentences already.

        A shard has too many if it has more than the median of all shards at the start of the round.
        """
        middle = median(self.counts)
        for shard, count in enumerate(self.counts):
            if count > middle:
                continue
            placed = stacks.pop_largest(self.nominal - count)
            if placed is not None:
                article, size = placed
                self.articles[shard].append(article)
                self.counts[shard] = count + size
