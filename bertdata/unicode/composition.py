"""Canonical composition of text (NFC) as in the package tokenizers, which uses Unicode 9.0.

The C++ version of this code is _native/unicode/composition.h.
"""

from functools import cache

from bertdata.unicode.characters import decompose_character
from bertdata.unicode.tables import load_library_classes, load_unicode11

_LEADING, _VOWELS, _TRAILING, _SYLLABLES = 0x1100, 0x1161, 0x11A7, 0xAC00


def compose(text: str) -> tuple[str, list[int]]:
    """Return the text in NFC, and for each of its characters an index into the original text.

    The package tokenizers reports the same indices as offsets. A composed character gets the index of the
    first of the characters that it was composed of. A character that decomposition has added gets the index
    of the character that was decomposed. If combining characters are sorted into another order, their indices
    follow the new order.
    """
    # ``added`` says how far the index moves on after each character of the result:
    # 1: the character has the same index as the character before it.
    # 0: the index moves on by one.
    # -n: the index moves on by 1 + n, because n more characters of the text were merged into this character.
    # For example, "e\u0301x" gives [("é", -1), ("x", 0)], and therefore the indices [0, 2].
    composed = _compose(_decompose(text))
    places, place = [], 0
    for _, added in composed:
        places.append(place - 1 if added > 0 else place)
        if added <= 0:
            place += 1 - added
    return "".join(character for character, _ in composed), places


Change = tuple[str, int]
"""A character of the result, and how it changes the length of the text, as the package tokenizers counts it.

1: decomposition has added this character.
0: the character replaces one character of the text.
-n: the character replaces one character of the text and n more after it.
"""


def _decompose(text: str) -> list[Change]:
    """Decompose a text canonically, and sort consecutive combining characters into their canonical order."""
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

    A mark cannot be composed if a mark before it was not composed and has the same or a higher combining
    class.
    """
    composed: list[Change] = []
    starter, last = None, 0
    for character, added in changes:
        # A character can be composed with the last starter if it follows directly, or if all marks between
        # them have lower classes. For example, in "a" + U+0323 (class 220) + U+0302 (class 230), U+0323 is
        # composed with "a" first, and U+0302 is composed with the result.
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
    """Return the character that two characters are composed to, or None if there is no such character."""
    # Hangul syllables are not in the table but are computed: a leading consonant and a vowel give a syllable,
    # and a syllable and a trailing consonant give another syllable.
    leading, vowel, trailing = ord(first) - _LEADING, ord(second) - _VOWELS, ord(second) - _TRAILING
    if 0 <= leading < 19 and 0 <= vowel < 21:
        return chr(_SYLLABLES + (leading * 21 + vowel) * 28)
    syllable = ord(first) - _SYLLABLES
    if 0 <= syllable < 11172 and syllable % 28 == 0 and 0 < trailing < 28:
        return chr(ord(first) + trailing)
    return _load_composites().get(first + second)


def get_combining_class(character: str) -> int:
    """Return the canonical combining class of a character in Unicode 9.0.

    It is 0 for all other characters than marks.
    """
    return _load_combining_classes().get(ord(character), 0)


def _get_change_class(change: Change) -> int:
    """Return the canonical combining class of the character in a change."""
    return get_combining_class(change[0])


@cache
def _load_combining_classes() -> dict[int, int]:
    """Load the canonical combining class of each combining character in Unicode 9.0, by code point."""
    newer = {point for first, last in load_library_classes().newer_mark for point in range(first, last + 1)}
    return {point: value for point, value in load_unicode11().combining.items() if point not in newer}


@cache
def _load_composites() -> dict[str, str]:
    """Load the character that each pair of characters is composed to."""
    never = {
        point for first, last in load_library_classes().never_composed for point in range(first, last + 1)
    }
    whole = {
        parts: chr(point)
        for point, parts in load_unicode11().decomposition.items()
        if len(parts) > 1 and point not in never
    }
    # The tables contain full decompositions, some of which have three characters. The first two of these are
    # composed first, and the result is composed with the last. For example, "u" + U+0308 + U+0304 becomes "ü"
    # + U+0304, which becomes "ǖ".
    return {whole.get(parts[:-1], parts[:-1]) + parts[-1]: composite for parts, composite in whole.items()}
