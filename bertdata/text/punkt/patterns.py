"""Characters and patterns that differ between the variants of Punkt. Twin of _native/text/punkt_characters.h.

======================================================  =======  ======  ======
difference                                              3.4.5    3.10.0  3.10.4
======================================================  =======  ======  ======
white space that separates a candidate's word           Unicode  ASCII   ASCII
a mark that starts its word is always a candidate       no       yes     yes
curly quotes, guillemets end words, close sentences     no       no      yes
U+001C to U+001F are white space                        yes      yes     no
numbers such as ``²`` are letters                       yes      yes     no
marks, joiners, all connectors are letters              no       no      yes
======================================================  =======  ======  ======

The quotes came with nltk 3.10.2. The last three differences came with 3.10.4, which uses the package
``regex`` instead of ``re``.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from bertdata.text.punkt.variants import Variant
from bertdata.unicode import characters

_QUOTES = "‘’“”«»"
_ASCII_SPACE = r"[ \t\n\r\f\v]"


@dataclass(frozen=True, kw_only=True, slots=True)
class Patterns:
    """Patterns and characters of one variant.

    end_mark: a candidate and what follows it. The group ``next`` is the next word if white space comes first.
    closing: marks that belong to the sentence before them, with the white space after them.
    separator: white space between the word of a candidate and the candidate before.
    counts_first_mark: whether a candidate that starts its word counts although another follows in the same
    word.
    word: a word within a line.
    is_letter: tests for letters. A letter with a period is an initial.
    """

    end_mark: re.Pattern[str]
    closing: re.Pattern[str]
    separator: re.Pattern[str]
    counts_first_mark: bool
    word: re.Pattern[str]
    is_letter: Callable[[str], bool]


@cache
def make_patterns(variant: Variant) -> Patterns:
    """Return the patterns of a variant."""
    is_regex = variant == "3.10.4"
    quotes = _QUOTES if is_regex else ""
    space, visible = (r"[^\S\x1c-\x1f]", r"[\S\x1c-\x1f]") if is_regex else (r"\s", r"\S")
    breaks_word = rf"""[?!'":;*@()\[\]{{}}{quotes}]"""
    return Patterns(
        end_mark=re.compile(rf"[.?!](?:(?={breaks_word})|(?={space}+(?P<next>{visible}+)))"),
        closing=re.compile(rf"""["')\]}}{quotes}]+(?:{space}+|(?=--)|\Z)"""),
        separator=re.compile(r"\s" if variant == "3.4.5" else _ASCII_SPACE),
        counts_first_mark=variant != "3.4.5",
        word=_make_word_pattern(space, visible, breaks_word),
        is_letter=characters.is_letter_or_mark if is_regex else characters.is_letter_like,
    )


def _make_word_pattern(space: str, visible: str, breaks_word: str) -> re.Pattern[str]:
    """Return the pattern of a word.

    It matches a dash or an ellipsis (``--``, ``...``, the spaced ``. . .``), or text up to a word end, or any
    single mark.
    """
    run = rf"(?:--+|\.\.+|\.(?:{space}\.){{2,}})"
    end = rf"(?:{space}|\Z|{breaks_word}|{run})"
    return re.compile(rf"""{run}|(?!["`:;,&\#*@()\[\]{{}}\-]){visible}{visible}*?(?=,?{end})|{visible}""")
