"""Properties and mappings of characters in Unicode 11.0. Twin of _native/unicode/unicode.h."""

from bisect import bisect_right
from collections.abc import Iterable
from functools import cache

from bertdata.unicode.tables import Ranges, unicode11

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


def _among(ranges: Ranges, character: str) -> bool:
    place = bisect_right(ranges, (ord(character), 0x110000)) - 1
    return place >= 0 and ord(character) <= ranges[place][1]


@cache
def is_space(character: str) -> bool:
    """Category Zs, or one of tab, line feed, carriage return."""
    return character in "\t\n\r" or _among(unicode11().space, character)


@cache
def is_control(character: str) -> bool:
    """Category Cc or Cf, tab, line feed and carriage return not counted."""
    return character not in "\t\n\r" and _among(unicode11().control, character)


@cache
def is_unassigned(character: str) -> bool:
    """Category Cn, Co or Cs: characters newer than Unicode 11.0 too."""
    return _among(unicode11().unassigned, character)


@cache
def is_punctuation(character: str) -> bool:
    """Category P*, or any printable ASCII character but letters, digits and space."""
    if character.isascii():
        return character.isprintable() and not character.isalnum() and character != " "
    return _among(unicode11().punctuation, character)


@cache
def is_mark(character: str) -> bool:
    """Category Mn: accents after decomposition."""
    return _among(unicode11().nonspacing_mark, character)


@cache
def is_ideograph(character: str) -> bool:
    """The eight CJK ranges of the BERT release."""
    return _among(_IDEOGRAPHS, character)


@cache
def is_upper(character: str) -> bool:
    """Property Uppercase: ``str.isupper()`` of one character."""
    return _among(unicode11().uppercase, character)


@cache
def is_lower(character: str) -> bool:
    """Property Lowercase: ``str.islower()`` of one character."""
    return _among(unicode11().lowercase, character)


@cache
def is_decimal(character: str) -> bool:
    r"""Category Nd: what ``\d`` matches."""
    return _among(unicode11().decimal, character)


@cache
def is_letter_like(character: str) -> bool:
    r"""True where ``\w`` matches and ``\d`` does not: letters, other numbers, the underscore."""
    return _among(unicode11().letter_like, character)


@cache
def is_letter_or_mark(character: str) -> bool:
    r"""True where ``\w`` of the package ``regex`` matches and ``\d`` does not.

    The property "word" of Unicode's technical standard 18: alphabetic characters, marks, connectors such
    as the underscore, zero-width joiners; numbers such as ``²`` and ``½`` are none.
    """
    return _among(unicode11().letter_or_mark, character)


@cache
def is_word(character: str) -> bool:
    r"""Category L* or N*, or the underscore: what ``\w`` matches."""
    return is_letter_like(character) or is_decimal(character)


@cache
def decimal_value(character: str) -> int | None:
    """The digit's value, of any script. None for what is no digit."""
    ranges = unicode11().decimal  # each holds one or more runs of ten digits, from zero to nine
    place = bisect_right(ranges, (ord(character), 0x110000)) - 1
    if place < 0 or ord(character) > ranges[place][1]:
        return None
    return (ord(character) - ranges[place][0]) % 10


@cache
def _is_cased(character: str) -> bool:
    return _among(unicode11().cased, character)


@cache
def _is_case_ignorable(character: str) -> bool:
    return _among(unicode11().case_ignorable, character)


def lower(token: str) -> str:
    """Python 3.7's ``str.lower()`` of one token: a capital sigma that ends a word becomes final."""
    if token.isascii():
        return token.lower()
    return "".join(
        ("ς" if _is_final(token, place) else "σ")
        if character == "Σ"
        else unicode11().lower.get(ord(character), character)
        for place, character in enumerate(token)
    )


def upper(text: str) -> str:
    """Python 3.7's ``str.upper()``: the full mapping, in which one character may become three."""
    if text.isascii():
        return text.upper()
    return "".join(unicode11().upper.get(ord(character), character) for character in text)


def _is_final(token: str, place: int) -> bool:
    """A cased character comes before the place and none after it, case-ignorable ones skipped."""
    return _next_is_cased(reversed(token[:place])) and not _next_is_cased(token[place + 1 :])


def _next_is_cased(characters: Iterable[str]) -> bool:
    for character in characters:
        if not _is_case_ignorable(character):
            return _is_cased(character)
    return False


def decompose(token: str) -> str:
    """NFD: canonical decomposition, runs of combining characters in canonical order."""
    if token.isascii():
        return token
    ordered: list[str] = []
    run: list[str] = []
    for character in "".join(map(decomposed, token)):
        if unicode11().combining.get(ord(character)):
            run.append(character)
        else:
            ordered += sorted(run, key=_combining_class)
            ordered.append(character)
            run.clear()
    return "".join(ordered + sorted(run, key=_combining_class))


def _combining_class(character: str) -> int:
    return unicode11().combining[ord(character)]


@cache
def decomposed(character: str) -> str:
    """The canonical decomposition of one character."""
    if ord(character) in _HANGUL:
        index = ord(character) - _HANGUL.start
        leading, vowel, trailing = index // 588, index % 588 // 28, index % 28
        return chr(0x1100 + leading) + chr(0x1161 + vowel) + (chr(0x11A7 + trailing) if trailing else "")
    return unicode11().decomposition.get(ord(character), character)
