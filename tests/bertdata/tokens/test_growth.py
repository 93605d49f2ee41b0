"""Normalisers that make a text too long, with steps in Python in place of the library's."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from bertdata.tokens.growth import MOST_GROWTH, GrowthMeter, TooMuchGrowth


def load(step: Mapping[str, Any]) -> Callable[[str], str]:
    [(kind, pattern)] = step["pattern"].items()
    expression = re.escape(pattern) if kind == "String" else pattern
    return lambda text: re.sub(expression, step["content"], text)


def replace(kind: str, pattern: str, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {kind: pattern}, "content": content}


def is_refused(normalizer: Any, text: str) -> bool:
    try:
        GrowthMeter(normalizer, load).check(text)
    except TooMuchGrowth:
        return True
    return False


@pytest.mark.parametrize(
    ("kind", "pattern"), [("String", ""), ("Regex", ""), ("Regex", "x*"), ("String", "a")]
)
def test_a_long_text_at_each_character_is_too_much(kind, pattern):
    """An empty pattern matches between any two characters, of a text as of a regular expression."""
    step = replace(kind, pattern, "b" * (MOST_GROWTH + 100))
    assert is_refused(step, "a" * 10_000)
    assert is_refused({"type": "Sequence", "normalizers": [step]}, "a" * 10_000)
    # Any text may have 65,536 characters.
    assert not is_refused(step, "a" * 100)


def test_the_growth_of_all_steps_counts_and_not_that_of_one():
    doubling = replace("String", "a", "aa")
    assert not is_refused({"type": "Sequence", "normalizers": [doubling] * 8}, "a" * 10_000)
    assert is_refused({"type": "Sequence", "normalizers": [doubling] * 9}, "a" * 10_000)
    # Of a text without the letter nothing grows.
    assert not is_refused({"type": "Sequence", "normalizers": [doubling] * 9}, "b" * 10_000)


def test_a_long_text_in_place_of_one_as_long_is_no_growth():
    assert not is_refused(replace("String", "a" * 400, "b" * 400), "a" * 100_000)
