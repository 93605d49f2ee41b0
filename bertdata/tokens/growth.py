"""Limits how much longer the normaliser of a tokenizer.json may make a text.

A malicious file of two kilobytes may replace ``a`` by ``aa`` 32 times, which turns each ``a`` into 4 GB. Only
the Replace steps of a normaliser are measured. Its other steps (such as lower case) can make a text only a
few times longer.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

MOST_GROWTH = 256
"""Normalisation may make a text at most this many times longer.

The limit is needed because the memory that ``tokenizers`` takes grows with the length of the text.
"""

_SHORT_TEXT = 1 << 16
"""Number of characters that any text may have after normalisation, even if it was very short before."""

_PIECE_CHARACTERS = 1 << 24
"""The largest number of characters that a single call may produce while the growth of a text is measured."""

Normalize = Callable[[str], str]


class TooMuchGrowth(Exception):
    """Error: the normaliser makes a text longer than allowed."""


class GrowthMeter:
    """Object that checks that the normaliser of a tokenizer.json does not make a text too long.

    normalizer: the normaliser, as parsed from the file.
    load: function that turns one step of the normaliser into a Python function from text to text.
    """

    def __init__(self, normalizer: Any, load: Callable[[Mapping[str, Any]], Normalize]) -> None:
        self._steps: list[tuple[Normalize, int]] = []
        steps = list(_list_steps(normalizer))
        most = 1.0
        for step in steps:
            most *= max(1.0, _compute_growth(step))
        # Most normalisers cannot make a text much longer. Their steps are not kept, so ``check`` has nothing
        # to measure.
        if most > MOST_GROWTH:
            self._steps = [(load(step), 1 + _count_inserted(step)) for step in steps]

    def check(self, text: str) -> None:
        """Raise TooMuchGrowth if the normaliser makes this text too long.

        Nothing is measured for the usual normalisers, which cannot make a text much longer.
        """
        limit = MOST_GROWTH * len(text) + _SHORT_TEXT
        for normalize, growth in self._steps:
            # Normalise the text in pieces, so that the result of a single call always fits into memory. A
            # match that spans two pieces is missed, but this hardly changes the length.
            size = max(1, _PIECE_CHARACTERS // growth)
            made, length = [], 0
            for start in range(0, len(text), size):
                made.append(normalize(text[start : start + size]))
                length += len(made[-1])
                if length > limit:
                    raise TooMuchGrowth
            text = "".join(made)


def _list_steps(normalizer: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the steps of a normaliser in order.

    A normaliser that is not a Sequence is its only step.
    """
    if isinstance(normalizer, Mapping):
        inner = normalizer.get("normalizers")
        if isinstance(inner, list):
            for step in inner:
                yield from _list_steps(step)
        else:
            yield normalizer


def _count_inserted(step: Mapping[str, Any]) -> int:
    """Return the length of the text that a step of the normaliser inserts, in characters."""
    content = step.get("content") or step.get("prepend")
    return len(content) if isinstance(content, str) else 0


def _compute_growth(step: Mapping[str, Any]) -> float:
    """Return how many times longer a step of the normaliser can make a text.

    The result is 1 for all steps except Replace.
    """
    if step.get("type") != "Replace":
        return 1.0
    pattern = step.get("pattern")
    text = pattern.get("String") if isinstance(pattern, Mapping) else None
    if isinstance(text, str) and text:
        return _count_inserted(step) / len(text)
    # A regular expression may match between any two characters, so the text may be inserted after each of
    # them.
    return 1.0 + _count_inserted(step)
