"""Canonical composition (NFC) as the library tokenizers does it, by Unicode 9.0.

Twin of _native/unicode/composition.h.
"""

from functools import cache

from bertdata.unicode.characters import decomposed
from bertdata.unicode.tables import library_classes, unicode11

_LEADING, _VOWELS, _TRAILING, _SYLLABLES = 0x1100, 0x1161, 0x11A7, 0xAC00


def compose(text: str) -> tuple[str, list[int]]:
    """The text in NFC, and for each of its characters the place in ``text`` of the one that it stands for.

    A composite stands for the character it begins with. The library counts on: a character that came of
    another is at that one's place, and one whose neighbours were swapped is at the place it has now.
    """
    composed = _compose(_decompose(text))
    places, place = [], 0
    for _, added in composed:
        places.append(place - 1 if added > 0 else place)
        if added <= 0:
            place += 1 - added
    return "".join(character for character, _ in composed), places


Change = tuple[str, int]
"""A character, and how many it adds to those before: 1 if new, 0 if it replaces one, -n if n more."""


def _decompose(text: str) -> list[Change]:
    """Canonical decomposition, runs of combining characters in canonical order."""
    ordered: list[Change] = []
    run: list[Change] = []
    for character in text:
        for index, part in enumerate(decomposed(character)):
            change = (part, 1 if index else 0)
            if combining_class(part):
                run.append(change)
            else:
                ordered += [*sorted(run, key=_class_of), change]
                run.clear()
    return ordered + sorted(run, key=_class_of)


def _compose(changes: list[Change]) -> list[Change]:
    """Each starter with the marks behind it that compose with it. A mark blocks those of no higher class."""
    composed: list[Change] = []
    starter, last = None, 0
    for character, added in changes:
        combining = combining_class(character)
        if starter is not None and (starter == len(composed) - 1 or last < combining):
            first, first_added = composed[starter]
            composite = pair(first, character)
            if composite is not None:
                composed[starter] = (composite, first_added + added - 1)
                continue
        if not combining:
            starter = len(composed)
        composed.append((character, added))
        last = combining
    return composed


def pair(first: str, second: str) -> str | None:
    """The composite of two characters. None where there is none."""
    leading, vowel, trailing = ord(first) - _LEADING, ord(second) - _VOWELS, ord(second) - _TRAILING
    if 0 <= leading < 19 and 0 <= vowel < 21:
        return chr(_SYLLABLES + (leading * 21 + vowel) * 28)
    syllable = ord(first) - _SYLLABLES
    if 0 <= syllable < 11172 and syllable % 28 == 0 and 0 < trailing < 28:
        return chr(ord(first) + trailing)
    return _composites().get(first + second)


def combining_class(character: str) -> int:
    """Canonical combining class in Unicode 9.0."""
    return _combining().get(ord(character), 0)


def _class_of(change: Change) -> int:
    return combining_class(change[0])


@cache
def _combining() -> dict[int, int]:
    newer = {point for first, last in library_classes().newer_mark for point in range(first, last + 1)}
    return {point: value for point, value in unicode11().combining.items() if point not in newer}


@cache
def _composites() -> dict[str, str]:
    """The composite of each pair of characters."""
    never = {point for first, last in library_classes().never_composed for point in range(first, last + 1)}
    whole = {
        parts: chr(point)
        for point, parts in unicode11().decomposition.items()
        if len(parts) > 1 and point not in never
    }
    return {whole.get(parts[:-1], parts[:-1]) + parts[-1]: composite for parts, composite in whole.items()}
