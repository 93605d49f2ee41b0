"""Draws the spans of a block and what replaces their ids, following Joshi et al. (2020).

The order of random draws is that of SpanBERT's program. Pure-Python twin of _native/examples/span_masking.h.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil

from bertdata.examples.span.settings import SpanSettings
from bertdata.examples.span.streams import SpanStream, choose_index

Span = tuple[int, int]
"""A span: its first position, and the position after its last."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanRules:
    """Settings of spans in the form that drawing needs.

    rate: share of the ids to mask.
    most: most masked positions of a block.
    shortest: number of words of the shortest span.
    lengths: cumulative probabilities of the number of words in a span, from ``shortest`` words on.
    mask_limit: an id becomes [MASK] if the random number drawn for it, in [0, 1), is below this limit.
    random_limit: an id becomes random if its number is below this limit, but not below mask_limit. Otherwise
        it stays.
    by_id: True draws a number for each id of a span. False draws one number for the whole span.
    are_external: True if a span's boundaries are the ids next to it. False if they are its first and last id.
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
    """Convert the settings of spans to the form that drawing needs."""
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
    """Return the cumulative probabilities of the number of words in a span, rounded as in SpanBERT's
    program.
    """
    p, count = settings.geometric_p, settings.longest_span - settings.shortest_span + 1
    # For example, p = 0.2 and 3 lengths give the weights [0.2, 0.16, 0.128]. Divided by their sum they are
    # [0.41, 0.33, 0.26], and added up [0.41, 0.74, 1.0]. Random numbers are compared with the last list, so
    # its last digits matter. SpanBERT's program computes it in NumPy's ``choice``.
    weights = [p * (1 - p) ** further for further in range(count)]
    total = list(accumulate(weights))[-1]  # sum() would correct rounding errors from Python 3.12 on
    sums = list(accumulate(weight / total for weight in weights))
    return tuple(share / sums[-1] for share in sums)


def draw_spans(word_starts: Sequence[int], rules: SpanRules, stream: SpanStream) -> list[Span]:
    """Draw the spans of a block and return them in ascending order. Spans that touch are joined.

    Spans are drawn until enough ids are masked. Each attempt draws three random numbers: the number of words,
    a number that is not used (SpanBERT's program uses it to choose between tags), and a position. If the
    position is already masked, the attempt is dropped.

    word_starts: for each id of the block 1 if a word starts there, else 0. The first id always starts a word.
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
        # The span starts with the word that contains the drawn position, the anchor. It ends early if the
        # block ends or if enough ids are masked, even within a word. It may include ids that are already
        # masked, which are not counted again.
        for position in _find_words(anchor, words, word_starts):
            if left:
                left -= not is_masked[position]
                is_masked[position] = True
    return _find_runs(is_masked)


def _find_words(anchor: int, words: int, word_starts: Sequence[int]) -> range:
    """Return the positions of ``words`` consecutive words.

    The first word is the one that contains the anchor.
    """
    # For example, with the word starts [1, 0, 1, 1, 0], 2 words from the anchor 1 are the word at 0 and 1 and
    # the word at 2, which together are range(0, 3).
    size = len(word_starts)
    start = anchor
    while start > 0 and not word_starts[start]:
        start -= 1
    stop = start
    for _ in range(words):
        stop = next((place for place in range(stop + 1, size) if word_starts[place]), size)
    return range(start, stop)


def _find_runs(is_masked: list[bool]) -> list[Span]:
    """Return each run of consecutive masked positions as a span."""
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
    """Return the ids of a block with the ids of its spans replaced.

    For each span a random number is drawn. It decides between [MASK], a random id and the original id. If
    ``rules.by_id`` is True, another number is drawn for each id and decides instead. A random id needs one
    more draw.

    body: the ids of the block.
    mask: id of [MASK].
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
    """Return the positions of the left and the right boundary of each span that has boundaries.

    size: number of ids in the block.
    are_external: True takes the ids next to the span. A span at either end of the block is then left out.
        False takes the span's first and last id.
    """
    if not are_external:
        return [(start, stop - 1) for start, stop in spans]
    return [(start - 1, stop) for start, stop in spans if start > 0 and stop < size]
