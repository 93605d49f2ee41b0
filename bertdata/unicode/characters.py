"""Properties of characters, and conversion of text to lower case and to decomposed form, by Unicode 11.0.

The C++ version of this code is _native/unicode/unicode.h.
"""

from bisect import bisect_right
from collections.abc import Iterable
from functools import cache

from bertdata.unicode.tables import Ranges, load_unicode11

_IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)
_HANGUL = range(0xAC00, 0xD7A4)


def _is_in_ranges(ranges: Ranges, character: str) -> bool:
    """Return True if one of the ranges contains the character."""
    place = bisect_right(ranges, (ord(character), 0x110000)) - 1
    return place >= 0 and ord(character) <= ranges[place][1]


@cache
def is_space(character: str) -> bool:
    """Return True for a white space character: category Zs (space separators), tab, line feed, carriage
    return.
    """
    return character in "\t\n\r" or _is_in_ranges(load_unicode11().space, character)


@cache
def is_control(character: str) -> bool:
    """Return True for a control or format character (Cc, Cf), except tab, line feed and carriage return."""
    return character not in "\t\n\r" and _is_in_ranges(load_unicode11().control, character)


@cache
def is_unassigned(character: str) -> bool:
    """Return True if the category of the character in Unicode 11.0 is Cn (unassigned), Co (private use) or Cs
    (surrogate).

    Characters that are newer than Unicode 11.0 are unassigned.
    """
    return _is_in_ranges(load_unicode11().unassigned, character)


@cache
def is_punctuation(character: str) -> bool:
    """Return True for a punctuation mark (categories P*).

    As in BERT's tokeniser, every ASCII symbol such as ``$`` also counts as a punctuation mark.
    """
    if character.isascii():
        return character.isprintable() and not character.isalnum() and character != " "
    return _is_in_ranges(load_unicode11().punctuation, character)


@cache
def is_mark(character: str) -> bool:
    """Return True for a nonspacing mark (category Mn). The accents in decomposed text are such marks."""
    return _is_in_ranges(load_unicode11().nonspacing_mark, character)


@cache
def is_ideograph(character: str) -> bool:
    """Return True if the character is in one of the eight ranges that BERT's program treats as Chinese
    characters.
    """
    return _is_in_ranges(_IDEOGRAPHS, character)


@cache
def is_upper(character: str) -> bool:
    """Return True if the character has the property Uppercase, as ``str.isupper()`` tests it."""
    return _is_in_ranges(load_unicode11().uppercase, character)


@cache
def is_lower(character: str) -> bool:
    """Return True if the character has the property Lowercase, as ``str.islower()`` tests it."""
    return _is_in_ranges(load_unicode11().lowercase, character)


@cache
def is_decimal(character: str) -> bool:
    r"""Return True for a decimal digit of any script (category Nd), which ``\d`` matches."""
    return _is_in_ranges(load_unicode11().decimal, character)


@cache
def is_letter_like(character: str) -> bool:
    r"""Return True for a character that ``\w`` matches and ``\d`` does not.

    These are letters, numbers other than decimal digits, and the underscore.
    """
    return _is_in_ranges(load_unicode11().letter_like, character)


@cache
def is_letter_or_mark(character: str) -> bool:
    r"""Return True for a character that ``\w`` matches and ``\d`` does not, in patterns of the package
    ``regex``.

    These characters have the property "word" of Unicode's technical standard 18 and are not digits:
    alphabetic characters, marks, connectors such as the underscore, and zero-width joiners. Numbers such as
    ``²`` and ``½`` are not included.
    """
    return _is_in_ranges(load_unicode11().letter_or_mark, character)


@cache
def is_word(character: str) -> bool:
    r"""Return True for a character that ``\w`` matches: categories L* and N*, and the underscore."""
    return is_letter_like(character) or is_decimal(character)


@cache
def get_decimal_value(character: str) -> int | None:
    """Return the value of a decimal digit of any script, or None for any other character."""
    # Each range of decimal digits consists of complete groups from 0 to 9. The value of a digit is therefore
    # its offset in the range modulo 10.
    ranges = load_unicode11().decimal
    place = bisect_right(ranges, (ord(character), 0x110000)) - 1
    if place < 0 or ord(character) > ranges[place][1]:
        return None
    return (ord(character) - ranges[place][0]) % 10


@cache
def _is_cased(character: str) -> bool:
    """Return True for a character with a case, such as a letter of the Latin alphabet."""
    return _is_in_ranges(load_unicode11().cased, character)


@cache
def _is_case_ignorable(character: str) -> bool:
    """Return True for a character that the rule for the final sigma skips, such as an apostrophe."""
    return _is_in_ranges(load_unicode11().case_ignorable, character)


def lower(token: str) -> str:
    """Convert a text to lower case as ``str.lower()`` of Python 3.7 does.

    A capital sigma becomes ``ς`` at the end of a word, and ``σ`` elsewhere.
    """
    if token.isascii():
        return token.lower()
    return "".join(
        ("ς" if _is_final(token, place) else "σ")
        if character == "Σ"
        else load_unicode11().lower.get(ord(character), character)
        for place, character in enumerate(token)
    )


def upper(text: str) -> str:
    """Convert a text to upper case as ``str.upper()`` of Python 3.7 does.

    A single character may become up to three characters.
    """
    if text.isascii():
        return text.upper()
    return "".join(load_unicode11().upper.get(ord(character), character) for character in text)


def _is_final(token: str, place: int) -> bool:
    """Return True if the capital sigma at index ``place`` ends a word, and therefore becomes ``ς``.

    By Unicode's rule, there must be a cased character before it and no cased character after it. Only the
    nearest character on each side counts, apart from case-ignorable characters, which are skipped.
    """
    return _is_next_cased(reversed(token[:place])) and not _is_next_cased(token[place + 1 :])


def _is_next_cased(characters: Iterable[str]) -> bool:
    """Return True if the first of these characters that is not case-ignorable has a case."""
    for character in characters:
        if not _is_case_ignorable(character):
            return _is_cased(character)
    return False


def decompose(token: str) -> str:
    """Return the canonical decomposition (NFD) of a text.

    Consecutive combining characters are sorted into their canonical order.
    """
    if token.isascii():
        return token
    ordered: list[str] = []
    run: list[str] = []
    for character in "".join(map(decompose_character, token)):
        if load_unicode11().combining.get(ord(character)):
            run.append(character)
        else:
            ordered += sorted(run, key=_get_combining_class)
            ordered.append(character)
            run.clear()
    return "".join(ordered + sorted(run, key=_get_combining_class))


def _get_combining_class(character: str) -> int:
    """Return the canonical combining class of a combining character."""
    return load_unicode11().combining[ord(character)]


@cache
def decompose_character(character: str) -> str:
    """Return the canonical decomposition of one character, or the character itself if it has none."""
    if ord(character) in _HANGUL:
        index = ord(character) - _HANGUL.start
        leading, vowel, trailing = index // 588, index % 588 // 28, index % 28
        return chr(0x1100 + leading) + chr(0x1161 + vowel) + (chr(0x11A7 + trailing) if trailing else "")
    return load_unicode11().decomposition.get(ord(character), character)
