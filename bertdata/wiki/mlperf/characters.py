r"""Matches word characters and parses numbers in the same way as Python 3.7, which has Unicode 11.0.

In other versions of Python, ``\w`` and ``int`` follow another version of Unicode. White space (``\s`` and
``str.strip``) is the same in all versions.
"""

from bertdata.unicode.characters import get_decimal_value, is_control, is_space, is_unassigned
from bertdata.unicode.tables import load_unicode11

WORD = "".join(
    f"\\U{first:08X}-\\U{last:08X}"
    for first, last in (*load_unicode11().letter_like, *load_unicode11().decimal)
)
"""All letters and numbers and the underscore, for use between the brackets of a regular expression."""

EDGE = f"(?![{WORD}])"
"""Part of a regular expression that matches the end of a word: no word character may follow."""


def parse_integer(text: str, base: int = 10) -> int:
    """Parse an integer in the same way as ``int`` of Python 3.7. The digits may be from any script.

    Raises ValueError if the text is not an integer.
    """
    return int(_convert_digits(text), base)


def parse_float(text: str) -> float:
    """Parse a number in the same way as ``float`` of Python 3.7.

    Raises ValueError if the text is not a number.
    """
    return float(_convert_digits(text))


def _convert_digits(text: str) -> str:
    """Replace the decimal digits of all scripts by ASCII digits.

    Raises ValueError for a character that cannot be part of a number.
    """
    if text.isascii():
        return text
    plain = []
    for character in text:
        digit = get_decimal_value(character)
        if digit is None and not character.isascii() and not character.isspace():
            raise ValueError(f"no number: {text!r}")
        plain.append(character if digit is None else str(digit))
    return "".join(plain)


def format_repr(text: str) -> str:
    """Format a string in the same way as ``repr`` of Python 3.7.

    Characters that are not printable in Unicode 11.0 are escaped.
    """
    # As in Python, use double quotes only if the text contains single quotes and no double quotes.
    quote = '"' if "'" in text and '"' not in text else "'"
    return quote + "".join(_format_character(character, quote) for character in text) + quote


def _format_character(character: str, quote: str) -> str:
    """Return a character as it appears in ``repr``: escaped if necessary."""
    code = ord(character)
    if character in (quote, "\\"):
        return "\\" + character
    if character in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[character]
    if _is_printable(character):
        return character
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _is_printable(character: str) -> bool:
    """Return True if the character is printable by the rules of ``str.isprintable`` in Unicode 11.0."""
    if character in " \u2028\u2029":
        return character == " "
    return not (is_space(character) or is_control(character) or is_unassigned(character))
