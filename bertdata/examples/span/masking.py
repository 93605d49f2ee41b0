"""Draws the spans of a block and what replaces their ids, after Joshi et al. (2020).

The order of random draws is that of SpanBERT's program. Pure-Python twin of _native/examples/span_masking.h.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil

from bertdata.examples.span.settings import SpanSettings
from bertdata.examples.span.streams import SpanStream, choose_index

Span = tuple[int, int]
"""A span as (first position, position after the last)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanRules:
    """Settings of spans, prepared for drawing.

    rate: share of the ids to mask.
    most: most masked positions of a block.
    shortest: number of words of the shortest span.
    lengths: cumulative distribution of span length in words, from ``shortest`` on.
    mask_limit, random_limit: a uniform draw below mask_limit gives [MASK], otherwise below random_limit a
    random id, otherwise the id stays.
    by_id: True if what replaces an id is drawn for each id of a span, False if it is drawn once for the whole
    span.
    are_external: True if a span's boundaries are the ids next to it, False if its first and last id.
    """

    rate: float
    most: int
    shortest: int
    lengths: tuple[float, ...]
    mask_limit: float
    random_limit: float
    by_id: bool
    are_external: bool


def prepare_span_rules(settings: SpanSettings) -> SpanRules:
    """Prepare the settings for drawing."""
    return SpanRules(
        rate=settings.masked_lm_prob,
        most=settings.most_masks,
        shortest=settings.shortest_span,
        lengths=_compute_length_distribution(settings),
        mask_limit=settings.mask_share,
        random_limit=1 - settings.kept_share if settings.kept_share else 1.0,
        by_id=settings.replacement == "word_piece",
        are_external=settings.endpoints == "external",
    )


def _compute_length_distribution(settings: SpanSettings) -> tuple[float, ...]:
    """Return the cumulative distribution of span lengths.

    The distribution is rounded as in SpanBERT's program, which uses NumPy's ``choice``.
    """
    p, count = settings.geometric_p, settings.longest_span - settings.shortest_span + 1
    # p 0.2, 3 lengths: weights [0.2, 0.16, 0.128], divided by their sum [0.41, 0.33, 0.26], cumulative
    # [0.41, 0.74, 1.0]. Draws are compared with these numbers, so their last digits matter.
    weights = [p * (1 - p) ** further for further in range(count)]
    total = list(accumulate(weights))[-1]  # not sum(), which corrects rounding since Python 3.12
    sums = list(accumulate(weight / total for weight in weights))
    return tuple(share / sums[-1] for share in sums)


def draw_spans(word_starts: Sequence[int], rules: SpanRules, stream: SpanStream) -> list[Span]:
    """Draw the spans of a block. Return them in ascending order. Spans that touch are joined.

    Each attempt makes three draws: the number of words, a number that is not used (SpanBERT's program draws
    it to choose between tags), and a position. If the position is masked already, the attempt is dropped.
    word_starts: for each id of the block 1 if a word starts there. The first id always starts a word.
    """
    size = len(word_starts)
    is_masked = [False] * size
    left = min(ceil(size * rules.rate), rules.most)
    while left:
        words = rules.shortest + choose_index(rules.lengths, stream)
        stream.random()
        anchor = stream.below(size)
        if is_masked[anchor]:
            continue
        # The span starts with the word that contains the anchor. It ends early at the end of the block or
        # when enough ids are masked, even within a word. It may run over ids that are masked already, which
        # are not counted twice.
        for position in _find_words(anchor, words, word_starts):
            if left:
                left -= not is_masked[position]
                is_masked[position] = True
    return _find_runs(is_masked)


def _find_words(anchor: int, words: int, word_starts: Sequence[int]) -> range:
    """Return the positions of ``words`` consecutive words, the first of which contains the anchor."""
    # word starts [1, 0, 1, 1, 0], anchor 1, 2 words -> the word at 0 and 1, and the word at 2: range(0, 3)
    size = len(word_starts)
    start = anchor
    while start > 0 and not word_starts[start]:
        start -= 1
    stop = start
    for _ in range(words):
        stop = next((place for place in range(stop + 1, size) if word_starts[place]), size)
    return range(start, stop)


def _find_runs(is_masked: list[bool]) -> list[Span]:
    """Return the runs of masked positions."""
    runs: list[Span] = []
    for position, masked in enumerate(is_masked):
        if masked and runs and runs[-1][1] == position:
            runs[-1] = runs[-1][0], position + 1
        elif masked:
            runs.append((position, position + 1))
    return runs


def replace_spans(
    body: Sequence[int],
    spans: list[Span],
    rules: SpanRules,
    mask: int,
    pool: Sequence[int],
    stream: SpanStream,
) -> list[int]:
    """Replace the ids of the spans.

    Each span draws once, and with ``by_id`` each of its ids draws again. The draw decides between [MASK], a
    random id and the original id. A random id needs one more draw.
    pool: the ids from which random ids are drawn.
    """
    made = list(body)
    for start, stop in spans:
        draw = stream.random()
        for position in range(start, stop):
            if rules.by_id:
                draw = stream.random()
            if draw < rules.mask_limit:
                made[position] = mask
            elif draw < rules.random_limit:
                made[position] = pool[stream.below(len(pool))]
    return made


def find_boundaries(spans: list[Span], size: int, *, are_external: bool) -> list[tuple[int, int]]:
    """Return the left and right boundary of each span that has targets.

    size: number of ids in the block.
    are_external: use the ids next to the span. A span at either end of the block then has no targets and is
    left out. Otherwise the boundaries are the span's first and last id.
    """
    if not are_external:
        return [(start, stop - 1) for start, stop in spans]
    return [(start - 1, stop) for start, stop in spans if start > 0 and stop < size]
