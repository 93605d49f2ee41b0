r"""Characters and patterns in which the variants of Punkt differ. Twin of _native/text/punkt_characters.h.

======================================================  =======  ======  ======
difference                                              3.4.5    3.10.0  3.10.4
======================================================  =======  ======  ======
white space that separates the word of a candidate      Unicode  ASCII   ASCII
a mark that begins its word is always a candidate       no       yes     yes
curly quotes, guillemets end words and close sentences  no       no      yes
U+001C to U+001F are white space                        yes      yes     no
numbers such as ``²`` are letters                       yes      yes     no
marks, joiners, all connectors are letters              no       no      yes
======================================================  =======  ======  ======

Quotes came with nltk 3.10.2. The last three came with 3.10.4, which matches with the package ``regex``
where earlier releases match with ``re``.
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
    """The patterns and characters of one variant.

    end_mark: a candidate and what follows it, ``next`` if that is a word after white space.
    closing: marks that go with the sentence before them, and the white space after them.
    separator: between the word that a candidate ends and the candidate before it.
    counts_first_mark: a candidate that is the first character of its word counts even if another one
    follows in that word.
    word: a word of one line. is_letter: a letter with a period is an initial.
    """

    end_mark: re.Pattern[str]
    closing: re.Pattern[str]
    separator: re.Pattern[str]
    counts_first_mark: bool
    word: re.Pattern[str]
    is_letter: Callable[[str], bool]


@cache
def patterns_of(variant: Variant) -> Patterns:
    """The patterns of a variant."""
    is_regex = variant == "3.10.4"
    quotes = _QUOTES if is_regex else ""
    space, visible = (r"[^\S\x1c-\x1f]", r"[\S\x1c-\x1f]") if is_regex else (r"\s", r"\S")
    breaks_word = rf"""[?!'":;*@()\[\]{{}}{quotes}]"""
    return Patterns(
        end_mark=re.compile(rf"[.?!](?:(?={breaks_word})|(?={space}+(?P<next>{visible}+)))"),
        closing=re.compile(rf"""["')\]}}{quotes}]+(?:{space}+|(?=--)|\Z)"""),
        separator=re.compile(r"\s" if variant == "3.4.5" else _ASCII_SPACE),
        counts_first_mark=variant != "3.4.5",
        word=_word(space, visible, breaks_word),
        is_letter=characters.is_letter_or_mark if is_regex else characters.is_letter_like,
    )


def _word(space: str, visible: str, breaks_word: str) -> re.Pattern[str]:
    """A dash or an ellipsis (--, ..., the spaced ". . ."), else text up to an end, else one mark."""
    run = rf"(?:--+|\.\.+|\.(?:{space}\.){{2,}})"
    end = rf"(?:{space}|\Z|{breaks_word}|{run})"
    return re.compile(rf"""{run}|(?!["`:;,&\#*@()\[\]{{}}\-]){visible}{visible}*?(?=,?{end})|{visible}""")
