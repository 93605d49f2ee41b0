"""Characters of Unicode 11.0 against those of the running Python, where both know them."""

import sys
import unicodedata

from bertdata.unicode import characters

KNOWN = [chr(code) for code in range(sys.maxunicode + 1) if not characters.is_unassigned(chr(code))]


def test_upper_casing_is_pythons():
    for character in KNOWN:
        upper = character.upper()
        if not any(map(characters.is_unassigned, upper)):  # a capital that came later
            assert characters.upper(character) == upper, hex(ord(character))
    assert characters.upper("straße ŉ ﬁ") == "STRASSE ʼN FI"


MARKS_THAT_BECAME_LETTERS = "\u1cf2\u1cf3"  # in Unicode 12.0


def test_word_characters_are_letters_numbers_and_the_underscore():
    for character in set(KNOWN) - set(MARKS_THAT_BECAME_LETTERS):
        expected = unicodedata.category(character)[0] in "LN" or character == "_"
        assert characters.is_word(character) is expected, hex(ord(character))


def test_digits_of_every_script_have_their_values():
    for character in KNOWN:
        assert characters.get_decimal_value(character) == unicodedata.decimal(character, None), hex(
            ord(character)
        )
