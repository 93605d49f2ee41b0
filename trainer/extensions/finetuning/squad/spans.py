"""Spans of a context that each fit into one feature, and the span in which a token has most context."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True, eq=False)
class ContextSpan:
    """Tokens ``first`` to ``first + length`` of a context.

    is_max_context: for each of them True where no other span gives it more context.
    """

    first: int
    length: int
    is_max_context: npt.NDArray[np.bool_]


def make_spans(tokens: int, longest: int, stride: int) -> list[ContextSpan]:
    """The spans of a context of so many tokens, in order; none where it has no tokens.

    A token's context in a span is the smaller of the tokens to its left and to its right, plus 0.01 x the
    span's length; the first span counts among equals.
    """
    bounds = span_bounds(tokens, longest, stride)
    if not bounds:
        return []
    firsts, lengths = (np.array(column)[:, None] for column in zip(*bounds, strict=True))
    places = np.arange(tokens)
    context = np.minimum(places - firsts, firsts + lengths - 1 - places)
    scores = np.where(context >= 0, context + 0.01 * lengths, -1.0)
    best: Any = scores.argmax(axis=0)  # the first among equals
    return [
        ContextSpan(first, length, best[first : first + length] == number)
        for number, (first, length) in enumerate(bounds)
    ]


def span_bounds(tokens: int, longest: int, stride: int) -> list[tuple[int, int]]:
    """First token and length of each span; they begin ``stride`` apart until the end is covered."""
    bounds: list[tuple[int, int]] = []
    first = 0
    while first < tokens:
        length = min(tokens - first, longest)
        bounds.append((first, length))
        if first + length == tokens:
            break
        first += min(length, stride)
    return bounds
