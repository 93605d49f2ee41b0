"""Limits how much longer a tokenizer.json's normaliser may make a text.

A file of two kilobytes whose normaliser replaces ``a`` by ``aa`` 32 times makes 4 GB of each ``a``. Other
steps (Unicode normalisation, lower case) lengthen a text only a few times, so only replacements are measured.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

MOST_GROWTH = 256
"""How many times longer normalisation may make a text. The memory that ``tokenizers`` needs grows with the
text.
"""

_SHORT_TEXT = 1 << 16
"""However short a text is, it may have this many characters after normalisation."""

_PIECE_CHARACTERS = 1 << 24
"""The most characters that a single normalisation step may produce while growth is measured."""

Normalize = Callable[[str], str]


class TooMuchGrowth(Exception):
    """The steps of a normaliser make a text longer than allowed."""


class GrowthMeter:
    """Measures how much longer each step of a normaliser makes a text, if its steps could exceed the limit.

    normalizer: the normaliser of a tokenizer.json.
    load: function that makes a Python function from one step.
    """

    def __init__(self, normalizer: Any, load: Callable[[Mapping[str, Any]], Normalize]) -> None:
        self._steps: list[tuple[Normalize, int]] = []
        steps = list(_list_steps(normalizer))
        most = 1.0
        for step in steps:
            most *= max(1.0, _compute_growth(step))
        # The normalisers of most files cannot make a text much longer. For these files nothing is measured.
        if most > MOST_GROWTH:
            self._steps = [(load(step), 1 + _count_inserted(step)) for step in steps]

    def check(self, text: str) -> None:
        """Raise TooMuchGrowth if the normaliser's steps make the text too long.

        Usual tokenizer.json files need no measurement, because their steps cannot make a text much longer.
        """
        limit = MOST_GROWTH * len(text) + _SHORT_TEXT
        for normalize, growth in self._steps:
            # Normalise in pieces, so that no single call produces more than fits into memory. A match across
            # the border of two pieces is missed, which hardly changes the length.
            size = max(1, _PIECE_CHARACTERS // growth)
            made, length = [], 0
            for start in range(0, len(text), size):
                made.append(normalize(text[start : start + size]))
                length += len(made[-1])
                if length > limit:
                    raise TooMuchGrowth
            text = "".join(made)


def _list_steps(normalizer: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the steps of a normaliser: those of a Sequence in order, or the normaliser itself."""
    if isinstance(normalizer, Mapping):
        inner = normalizer.get("normalizers")
        if isinstance(inner, list):
            for step in inner:
                yield from _list_steps(step)
        else:
            yield normalizer


def _count_inserted(step: Mapping[str, Any]) -> int:
    """Return the number of characters of the text that the step inserts."""
    content = step.get("content") or step.get("prepend")
    return len(content) if isinstance(content, str) else 0


def _compute_growth(step: Mapping[str, Any]) -> float:
    """Return how many times longer a Replace step can make a text. 1 for all other steps."""
    if step.get("type") != "Replace":
        return 1.0
    pattern = step.get("pattern")
    text = pattern.get("String") if isinstance(pattern, Mapping) else None
    if isinstance(text, str) and text:
        return _count_inserted(step) / len(text)
    return 1.0 + _count_inserted(step)  # a regular expression may match between any two characters
