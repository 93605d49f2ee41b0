"""Warns if a vocabulary does not fit a text: it gives many unknown tokens, or has the wrong casing."""

from collections.abc import Callable, Sequence
from operator import ne

from bertdata.records import Vocabulary

_MOST_UNKNOWN = 0.02
_LEAST_CASED_SHARE = 0.05
"""A vocabulary counts as cased if at least this share of its tokens has capital letters.

An uncased vocabulary has no capital letters.
"""
_SAMPLE_TOKENS = 2000
"""Number of tokens in the sample that is checked first for capital letters. They are spread evenly over the
vocabulary.
"""

KEEP_CASE, LOWER_CASE = "add --no-lower-case", "leave out --no-lower-case"
"""Remedies for a vocabulary with the wrong casing: what to change in the command ``bertdata create``."""


def warn_of_unknown_tokens(unknown: int | None, tokens: int, name: str) -> list[str]:
    """Return a list with a warning if more than 2 % of the tokens are unknown, otherwise an empty list.

    unknown: number of unknown tokens, or None if it was not counted.
    tokens: number of all tokens.
    name: name of the vocabulary.
    """
    if not unknown or unknown <= _MOST_UNKNOWN * tokens:
        return []
    return [
        f"{name}: {unknown / tokens:.1%} of {tokens} tokens are [UNK], more than {_MOST_UNKNOWN:.0%}: the "
        "vocabulary does not suit this text; choose one of its language and casing, or make one with "
        "bertdata train-vocab"
    ]


def warn_of_casing(
    vocabulary: Vocabulary, lower_case: bool, *, remedies: Sequence[str] = (KEEP_CASE, LOWER_CASE)
) -> list[str]:
    """Return a list with a warning if the casing of the vocabulary and the text differ, otherwise an empty
    list.

    The vocabulary is cased and the text is converted to lower case, or the other way round.

    lower_case: whether the text is converted to lower case.
    remedies: two texts that advise the user, the first if the text is converted to lower case, the second if
        not.
    """
    if lower_case != _has_capitals(vocabulary.words[:: max(1, vocabulary.size // _SAMPLE_TOKENS)]):
        return []  # In the usual case the sample is enough, which takes a millisecond.
    words = _drop_special_tokens(vocabulary.words)
    capitals = _count_changed(words, str.lower)
    if lower_case and capitals >= _LEAST_CASED_SHARE * len(words) > 0:
        return [
            f"{vocabulary.name}: {capitals} of {len(words)} tokens have a capital letter, but the text is "
            f"lower-cased and never matches them; {remedies[0]}, or choose an uncased vocabulary"
        ]
    if (
        not lower_case
        and not capitals
        and _count_changed(words, str.upper) >= _LEAST_CASED_SHARE * len(words) > 0
    ):
        return [
            f"{vocabulary.name}: no token has a capital letter, but the text keeps its case and accents: its "
            f"words with capitals become [UNK]; {remedies[1]}, or choose a cased vocabulary"
        ]
    return []


def _drop_special_tokens(words: Sequence[str]) -> list[str]:
    """Return all tokens except special tokens in brackets, such as [CLS] or [unused1]."""
    return [word for word in words if word[:1] != "[" or word[-1] != "]"]


def _has_capitals(words: Sequence[str]) -> bool:
    """Return True if any token has a capital letter, apart from special tokens in brackets."""
    return _count_changed(_drop_special_tokens(words), str.lower) > 0


def _count_changed(words: Sequence[str], change: Callable[[str], str]) -> int:
    """Count the words that change when they are converted to lower or upper case.

    change: ``str.lower`` or ``str.upper``. It is called once on all words together, which is faster than once
        per word.
    """
    return sum(map(ne, words, change("\0".join(words)).split("\0")))
