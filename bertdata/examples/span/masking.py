"""Spans of a block and what stands in their place: the specification, after Joshi et al. (2020).

The order of the draws is that of SpanBERT's program. Twin of _native/examples/span_masking.h.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil

from bertdata.examples.span.settings import SpanSettings
from bertdata.examples.span.streams import SpanStream, choose

Span = tuple[int, int]
"""Its first position, and the first behind it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanRules:
    """Settings of spans as numbers.

    rate: share of the ids to mask. most: masks of a block. shortest: words of the shortest span. lengths: for
    each length from there on, the share of spans up to it. below these draws of [0, 1) an id becomes [MASK]
    (mask_limit), else a random id (random_limit). by_id: each id draws for itself.
    """

    rate: float
    most: int
    shortest: int
    lengths: tuple[float, ...]
    mask_limit: float
    random_limit: float
    by_id: bool
    are_external: bool


def span_rules(settings: SpanSettings) -> SpanRules:
    """The settings as numbers."""
    return SpanRules(
        rate=settings.masked_lm_prob,
        most=settings.most_masks,
        shortest=settings.shortest_span,
        lengths=_cumulative_shares(settings),
        mask_limit=settings.mask_share,
        random_limit=1 - settings.kept_share if settings.kept_share else 1.0,
        by_id=settings.replacement == "word_piece",
        are_external=settings.endpoints == "external",
    )


def _cumulative_shares(settings: SpanSettings) -> tuple[float, ...]:
    """The share of spans up to each length, summed as the original and NumPy's ``choice`` do."""
    p, count = settings.geometric_p, settings.longest_span - settings.shortest_span + 1
    weights = [p * (1 - p) ** further for further in range(count)]
    total = list(accumulate(weights))[-1]  # sum() compensates rounding from Python 3.12 on
    sums = list(accumulate(weight / total for weight in weights))
    return tuple(share / sums[-1] for share in sums)


def draw_spans(word_starts: Sequence[int], rules: SpanRules, stream: SpanStream) -> list[Span]:
    """The spans of a block, ascending, none touching another.

    Until enough ids are masked: draw a number of words, a number that decides nothing (the original's
    choice of tagged ids), and a position, anew where it is masked. From the start of that position's word on,
    so many words are masked, as far as the block and the number of masks go. Spans that touch are one.
    word_starts: for each id of the block, 1 where a word starts. The first id always starts one.
    """
    size = len(word_starts)
    is_masked = [False] * size
    left = min(ceil(size * rules.rate), rules.most)
    while left:
        words = rules.shortest + choose(rules.lengths, stream)
        stream.random()
        anchor = stream.below(size)
        if is_masked[anchor]:
            continue
        for position in _words_at(anchor, words, word_starts):
            if left:
                left -= not is_masked[position]
                is_masked[position] = True
    return _runs(is_masked)


def _words_at(anchor: int, words: int, word_starts: Sequence[int]) -> range:
    """The positions of so many words, the first of which holds the anchor."""
    size = len(word_starts)
    start = anchor
    while start > 0 and not word_starts[start]:
        start -= 1
    stop = start
    for _ in range(words):
        stop = next((place for place in range(stop + 1, size) if word_starts[place]), size)
    return range(start, stop)


def _runs(is_masked: list[bool]) -> list[Span]:
    """The runs of masked positions."""
    runs: list[Span] = []
    for position, masked in enumerate(is_masked):
        if masked and runs and runs[-1][1] == position:
            runs[-1] = runs[-1][0], position + 1
        elif masked:
            runs.append((position, position + 1))
    return runs


def replace(
    body: Sequence[int],
    spans: list[Span],
    rules: SpanRules,
    mask: int,
    pool: Sequence[int],
    stream: SpanStream,
) -> list[int]:
    """The ids of a block with those of its spans replaced. pool: random ids are drawn from these.

    A span draws once; with ``by_id`` each of its ids draws again. The draw decides between [MASK], a random
    id, which is one more draw for each id, and the id itself.
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


def boundaries(spans: list[Span], size: int, *, are_external: bool) -> list[tuple[int, int]]:
    """The left and the right boundary of each span that has targets, in a block of so many ids.

    External boundaries are the ids beside the span: one at either end of the block has none. Internal ones
    are its own first and last id.
    """
    if not are_external:
        return [(start, stop - 1) for start, stop in spans]
    return [(start - 1, stop) for start, stop in spans if start > 0 and stop < size]
