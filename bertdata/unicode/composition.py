"""Canonical composition (NFC) as the package tokenizers does it, with the data of Unicode 9.0.

Python twin of _native/unicode/composition.h.
"""

from functools import cache

from bertdata.unicode.characters import decompose_character
from bertdata.unicode.tables import load_library_classes, load_unicode11

_LEADING, _VOWELS, _TRAILING, _SYLLABLES = 0x1100, 0x1161, 0x11A7, 0xAC00


def compose(text: str) -> tuple[str, list[int]]:
    """Return the text in NFC, and for each of its characters an index into ``text``.

    The indices are the offsets that the package tokenizers reports. A composed character has the index of the
    character it starts with. A character added by decomposition has the index of the character it was
    decomposed from. Combining characters that change places keep counting in their new order.
    """
    # ``added`` says how the index moves after each character. If it is 1, the character has the same index as
    # the character before it. If it is 0, the index moves on by one. If it is -n, the index moves on by 1 +
    # n, because n further characters of the text were merged into this character.
    # "e\u0301x" -> [("é", -1), ("x", 0)] -> indices [0, 2]
    composed = _compose(_decompose(text))
    places, place = [], 0
    for _, added in composed:
        places.append(place - 1 if added > 0 else place)
        if added <= 0:
            place += 1 - added
    return "".join(character for character, _ in composed), places


Change = tuple[str, int]
"""A character, and how it changes the length of the text, as the package tokenizers counts it.

1: added by decomposition. 0: replaces one character. -n: also replaces n following characters.
"""


def _decompose(text: str) -> list[Change]:
    """Decompose the text canonically, and bring runs of combining characters into canonical order."""
    ordered: list[Change] = []
    run: list[Change] = []
    for character in text:
        for index, part in enumerate(decompose_character(character)):
            change = (part, 1 if index else 0)
            if get_combining_class(part):
                run.append(change)
            else:
                ordered += [*sorted(run, key=_get_change_class), change]
                run.clear()
    return ordered + sorted(run, key=_get_change_class)


def _compose(changes: list[Change]) -> list[Change]:
    """Compose each starter (a character of combining class 0) with the marks that follow it, where possible.

    A mark is blocked if an earlier remaining mark has the same or a higher combining class.
    """
    composed: list[Change] = []
    starter, last = None, 0
    for character, added in changes:
        # A character can compose with the last starter if it follows directly, or if all marks in between
        # have lower classes. "a" + U+0323 (class 220) + U+0302 (class 230): U+0323 composes first, then
        # U+0302 composes with the result.
        combining = get_combining_class(character)
        if starter is not None and (starter == len(composed) - 1 or last < combining):
            first, first_added = composed[starter]
            composite = compose_pair(first, character)
            if composite is not None:
                composed[starter] = (composite, first_added + added - 1)
                continue
        if not combining:
            starter = len(composed)
        composed.append((character, added))
        last = combining
    return composed


def compose_pair(first: str, second: str) -> str | None:
    """Return the character that two characters compose to, or None."""
    # Hangul syllables are computed: leading consonant + vowel, then syllable + trailing consonant.
    leading, vowel, trailing = ord(first) - _LEADING, ord(second) - _VOWELS, ord(second) - _TRAILING
    if 0 <= leading < 19 and 0 <= vowel < 21:
        return chr(_SYLLABLES + (leading * 21 + vowel) * 28)
    syllable = ord(first) - _SYLLABLES
    if 0 <= syllable < 11172 and syllable % 28 == 0 and 0 < trailing < 28:
        return chr(ord(first) + trailing)
    return _load_composites().get(first + second)


def get_combining_class(character: str) -> int:
    """Return the canonical combining class in Unicode 9.0."""
    return _load_combining_classes().get(ord(character), 0)


def _get_change_class(change: Change) -> int:
    return get_combining_class(change[0])


@cache
def _load_combining_classes() -> dict[int, int]:
    """Return the canonical combining class of each combining character in Unicode 9.0, by code point."""
    newer = {point for first, last in load_library_classes().newer_mark for point in range(first, last + 1)}
    return {point: value for point, value in load_unicode11().combining.items() if point not in newer}


@cache
def _load_composites() -> dict[str, str]:
    """Return the character that each pair of characters composes to."""
    never = {
        point for first, last in load_library_classes().never_composed for point in range(first, last + 1)
    }
    whole = {
        parts: chr(point)
        for point, parts in load_unicode11().decomposition.items()
        if len(parts) > 1 and point not in never
    }
    # The tables hold full decompositions, which may have three characters. The first two of them compose to
    # a character that pairs with the last: "u" + U+0308 + U+0304 -> ("ü", U+0304) -> "ǖ".
    return {whole.get(parts[:-1], parts[:-1]) + parts[-1]: composite for parts, composite in whole.items()}
