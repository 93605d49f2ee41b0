"""Warnings where a vocabulary does not fit the text: many [UNK], or the other casing."""

from collections.abc import Callable, Sequence
from operator import ne

from bertdata.records import Vocabulary

_MOST_UNKNOWN = 0.02
_CASED = 0.05
"""The least share of tokens with a capital letter in a cased vocabulary; an uncased one has none."""
_SAMPLE = 2000
"""Tokens, spread over the vocabulary, that are looked at first: of a cased one, many have capitals."""

KEEP_CASE, LOWER_CASE = "add --no-lower-case", "leave out --no-lower-case"
"""Remedies for a vocabulary of the other casing, by the flags of ``create``."""


def unknown_warnings(unknown: int | None, tokens: int, name: str) -> list[str]:
    """A warning where more than 2 % of the tokens are [UNK]."""
    if not unknown or unknown <= _MOST_UNKNOWN * tokens:
        return []
    return [
        f"{name}: {unknown / tokens:.1%} of {tokens} tokens are [UNK], more than {_MOST_UNKNOWN:.0%}: the "
        "vocabulary does not suit this text; choose one of its language and casing, or make one with "
        "bertdata train-vocab"
    ]


def casing_warnings(
    vocabulary: Vocabulary, lower_case: bool, *, remedies: Sequence[str] = (KEEP_CASE, LOWER_CASE)
) -> list[str]:
    """A warning where the vocabulary is cased and the text is lower-cased, or the other way round.

    remedies: for text that is lower-cased, and for text that keeps its case.
    """
    if lower_case != _has_capitals(vocabulary.words[:: max(1, vocabulary.size // _SAMPLE)]):
        return []  # nearly every run, told in a millisecond
    words = _plain(vocabulary.words)
    capitals = _changed(words, str.lower)
    if lower_case and capitals >= _CASED * len(words) > 0:
        return [
            f"{vocabulary.name}: {capitals} of {len(words)} tokens have a capital letter, but the text is "
            f"lower-cased and never matches them; {remedies[0]}, or choose an uncased vocabulary"
        ]
    if not lower_case and not capitals and _changed(words, str.upper) >= _CASED * len(words) > 0:
        return [
            f"{vocabulary.name}: no token has a capital letter, but the text keeps its case and accents: its "
            f"words with capitals become [UNK]; {remedies[1]}, or choose a cased vocabulary"
        ]
    return []


def _plain(words: Sequence[str]) -> list[str]:
    """The words without those in brackets: [CLS], [unused1]."""
    return [word for word in words if word[:1] != "[" or word[-1] != "]"]


def _has_capitals(words: Sequence[str]) -> bool:
    return _changed(_plain(words), str.lower) > 0


def _changed(words: Sequence[str], change: Callable[[str], str]) -> int:
    """Number of words that the change of case alters. All at once, as vocabularies are long."""
    return sum(map(ne, words, change("\0".join(words)).split("\0")))
