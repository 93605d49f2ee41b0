"""Properties and mappings of characters in Unicode 11.0. Python twin of _native/unicode/unicode.h."""

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
    place = bisect_right(ranges, (ord(character), 0x110000)) - 1
    return place >= 0 and ord(character) <= ranges[place][1]


@cache
def is_space(character: str) -> bool:
    """Return True for white space: category Zs (space separators), tab, line feed, carriage return."""
    return character in "\t\n\r" or _is_in_ranges(load_unicode11().space, character)


@cache
def is_control(character: str) -> bool:
    """Return True for control and format characters (Cc, Cf), except tab, line feed and carriage return."""
    return character not in "\t\n\r" and _is_in_ranges(load_unicode11().control, character)


@cache
def is_unassigned(character: str) -> bool:
    """Return True for categories Cn, Co and Cs. Characters newer than Unicode 11.0 count as unassigned."""
    return _is_in_ranges(load_unicode11().unassigned, character)


@cache
def is_punctuation(character: str) -> bool:
    """Return True for punctuation (P*), and for all ASCII symbols such as ``$``, as in BERT's tokeniser."""
    if character.isascii():
        return character.isprintable() and not character.isalnum() and character != " "
    return _is_in_ranges(load_unicode11().punctuation, character)


@cache
def is_mark(character: str) -> bool:
    """Return True for nonspacing marks (category Mn). After decomposition, these are the accents."""
    return _is_in_ranges(load_unicode11().nonspacing_mark, character)


@cache
def is_ideograph(character: str) -> bool:
    """Return True for the eight CJK ranges that the original BERT code treats as ideographs."""
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
    r"""Return True for what ``\w`` matches and ``\d`` does not: letters, other numbers and the underscore."""
    return _is_in_ranges(load_unicode11().letter_like, character)


@cache
def is_letter_or_mark(character: str) -> bool:
    r"""Return True for what ``\w`` of the package ``regex`` matches and ``\d`` does not.

    This is the property "word" of Unicode's technical standard 18 without digits: alphabetic characters,
    marks, connectors such as the underscore, and zero-width joiners. Numbers such as ``²`` and ``½`` are not
    included.
    """
    return _is_in_ranges(load_unicode11().letter_or_mark, character)


@cache
def is_word(character: str) -> bool:
    r"""Return True for categories L* and N*, and the underscore, which ``\w`` matches."""
    return is_letter_like(character) or is_decimal(character)


@cache
def get_decimal_value(character: str) -> int | None:
    """Return the value of a decimal digit of any script, or None for any other character."""
    # Each range consists of complete runs of ten digits, so the offset modulo 10 is the digit's value.
    ranges = load_unicode11().decimal
    place = bisect_right(ranges, (ord(character), 0x110000)) - 1
    if place < 0 or ord(character) > ranges[place][1]:
        return None
    return (ord(character) - ranges[place][0]) % 10


@cache
def _is_cased(character: str) -> bool:
    return _is_in_ranges(load_unicode11().cased, character)


@cache
def _is_case_ignorable(character: str) -> bool:
    return _is_in_ranges(load_unicode11().case_ignorable, character)


def lower(token: str) -> str:
    """Convert to lower case as Python 3.7's ``str.lower()`` does.

    A capital sigma at the end of a word becomes ``ς``, elsewhere ``σ``.
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
    """Convert to upper case as Python 3.7's ``str.upper()`` does. One character may become up to three
    characters.
    """
    if text.isascii():
        return text.upper()
    return "".join(load_unicode11().upper.get(ord(character), character) for character in text)


def _is_final(token: str, place: int) -> bool:
    """Return True if the capital sigma at ``place`` ends a word, and so becomes ``ς``.

    Unicode's rule: the nearest character before it is cased and the nearest after it is not. Case-ignorable
    characters are skipped on both sides.
    """
    return _is_next_cased(reversed(token[:place])) and not _is_next_cased(token[place + 1 :])


def _is_next_cased(characters: Iterable[str]) -> bool:
    for character in characters:
        if not _is_case_ignorable(character):
            return _is_cased(character)
    return False


def decompose(token: str) -> str:
    """Decompose the text canonically (NFD), and bring runs of combining characters into canonical order."""
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
    return load_unicode11().combining[ord(character)]


@cache
def decompose_character(character: str) -> str:
    """Return the canonical decomposition of one character, or the character itself if it has none."""
    if ord(character) in _HANGUL:
        index = ord(character) - _HANGUL.start
        leading, vowel, trailing = index // 588, index % 588 // 28, index % 28
        return chr(0x1100 + leading) + chr(0x1161 + vowel) + (chr(0x11A7 + trailing) if trailing else "")
    return load_unicode11().decomposition.get(ord(character), character)
