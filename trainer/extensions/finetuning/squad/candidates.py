"""Candidates for an answer: starts and ends with the largest logits that make a span of the context."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trainer.extensions.finetuning.squad.features import Feature

Array = npt.NDArray[Any]

_ROWS = 4096
"""Features that are sorted at a time, which bounds the memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Candidates of one feature: position and logit (in double) of start and end, a column each."""

    starts: Array
    ends: Array
    start_logits: Array
    end_logits: Array


def best_positions(logits: Array, count: int) -> Array:
    """The ``count`` best positions of each row, (features, n), over all, padding included.

    The best first, and the lower among equals.
    """
    rows = [
        np.argsort(-logits[first : first + _ROWS], axis=1, kind="stable")[:, :count]
        for first in range(0, len(logits), _ROWS)
    ]
    return np.concatenate(rows) if rows else np.zeros((0, count), np.int64)


def find_candidates(
    feature: Feature, starts: Array, ends: Array, start_logits: Array, end_logits: Array, longest: int
) -> Candidates:
    """Each pair of a best start and a best end that is an answer of at most ``longest`` tokens.

    Both are tokens of the span, and the start has its maximum context there. In the order of the starts'
    ranks, then of the ends'. start_logits, end_logits: one for each position of the feature.
    """
    document, length = feature.document, feature.span.length
    inside = (starts >= document) & (starts < document + length)
    starts = starts[inside]
    starts = starts[feature.span.is_max_context[starts - document]]
    ends = ends[(ends >= document) & (ends < document + length)]
    tokens = ends[None, :] - starts[:, None] + 1
    rows, columns = np.nonzero((tokens >= 1) & (tokens <= longest))
    starts, ends = starts[rows], ends[columns]
    return Candidates(
        starts, ends, start_logits[starts].astype(np.float64), end_logits[ends].astype(np.float64)
    )
