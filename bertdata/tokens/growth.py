"""How much longer a normaliser makes a text: measured where a tokenizer.json's replacements may multiply it.

A file of two kilobytes whose normaliser replaces ``a`` by ``aa`` 32 times makes 4 GB of each ``a``. Forms of
Unicode, lower case and the like lengthen a text by a few times at most, so only replacements count.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

MOST_GROWTH = 256
"""A text may become so many times as long as it was; what the library takes grows with it."""

_SHORT_TEXT = 1 << 16
"""Characters that a text of any length may have once it is normalised."""

_PIECE_CHARACTERS = 1 << 24
"""The most characters that a step makes at once while it is measured."""

Normalize = Callable[[str], str]


class TooLong(Exception):
    """The text became longer than it may."""


class GrowthMeter:
    """Measures the growth of texts, step by step, where the steps could break the limit.

    normalizer: that of a tokenizer.json. load: makes a function of one of its steps.
    """

    def __init__(self, normalizer: Any, load: Callable[[Mapping[str, Any]], Normalize]) -> None:
        self._steps: list[tuple[Normalize, int]] = []
        steps = list(_steps(normalizer))
        most = 1.0
        for step in steps:
            most *= max(1.0, _growth(step))
        if most > MOST_GROWTH:
            self._steps = [(load(step), 1 + _longest_content(step)) for step in steps]

    def check(self, text: str) -> None:
        """Raise TooLong where the steps make the text too long. The usual file is not measured."""
        limit = MOST_GROWTH * len(text) + _SHORT_TEXT
        for normalize, growth in self._steps:
            # Piece by piece, so that no single call makes more than memory holds. A match that lies across
            # two pieces is missed, which changes the length by next to nothing.
            size = max(1, _PIECE_CHARACTERS // growth)
            made, length = [], 0
            for start in range(0, len(text), size):
                made.append(normalize(text[start : start + size]))
                length += len(made[-1])
                if length > limit:
                    raise TooLong
            text = "".join(made)


def _steps(normalizer: Any) -> Iterator[Mapping[str, Any]]:
    """The steps of a Sequence in order, or the single step."""
    if isinstance(normalizer, Mapping):
        inner = normalizer.get("normalizers")
        if isinstance(inner, list):
            for step in inner:
                yield from _steps(step)
        else:
            yield normalizer


def _longest_content(step: Mapping[str, Any]) -> int:
    """Characters of the text that the step puts in the place of a match, or before a text."""
    content = step.get("content") or step.get("prepend")
    return len(content) if isinstance(content, str) else 0


def _growth(step: Mapping[str, Any]) -> float:
    """The most times that a replacement makes a text longer; 1 for all other steps."""
    if step.get("type") != "Replace":
        return 1.0
    pattern = step.get("pattern")
    text = pattern.get("String") if isinstance(pattern, Mapping) else None
    if isinstance(text, str) and text:
        return _longest_content(step) / len(text)
    return 1.0 + _longest_content(step)  # an expression may match between all characters
