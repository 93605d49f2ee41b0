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
    """Regular expressions and character tests of one variant of Punkt.

    end_mark: matches an end mark that may end a sentence. The group ``next`` is the next word, if white space
        follows the mark.
    closing: matches closing quotes and brackets, which belong to the sentence before them, and the white
        space after them.
    separator: matches the white space between words, to find the word that an end mark belongs to.
    counts_first_mark: True if an end mark at the start of a word counts even if the word contains another
        one.
    word: matches a word within a line.
    is_letter: function that returns True for a letter. A letter with a period is an initial.
    """

    end_mark: re.Pattern[str]
    closing: re.Pattern[str]
    separator: re.Pattern[str]
    counts_first_mark: bool
    word: re.Pattern[str]
    is_letter: Callable[[str], bool]


@cache
def make_patterns(variant: Variant) -> Patterns:
    """Return the patterns of a variant of Punkt. They are compiled only once per process."""
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
    """Compile the regular expression that matches a word.

    A word is one of three things: a dash or an ellipsis (``--``, ``...``, or ``. . .`` with spaces), text up
    to the end of a word, or any other single mark.
    """
    run = rf"(?:--+|\.\.+|\.(?:{space}\.){{2,}})"
    end = rf"(?:{space}|\Z|{breaks_word}|{run})"
    return re.compile(rf"""{run}|(?!["`:;,&\#*@()\[\]{{}}\-]){visible}{visible}*?(?=,?{end})|{visible}""")
