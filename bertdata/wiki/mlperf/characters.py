r"""Match word characters and parse numbers as Python 3.7 does, which has Unicode 11.0.

``\w`` and ``int`` follow the Unicode version of the running Python. The functions here follow Python 3.7.
White space (``\s``, ``str.strip``) is the same in all versions.
"""

from bertdata.unicode.characters import get_decimal_value, is_control, is_space, is_unassigned
from bertdata.unicode.tables import load_unicode11

WORD = "".join(
    f"\\U{first:08X}-\\U{last:08X}"
    for first, last in (*load_unicode11().letter_like, *load_unicode11().decimal)
)
"""All letters, numbers and the underscore, as ranges for the brackets of a regular expression."""

EDGE = f"(?![{WORD}])"
"""End of a word, for a regular expression: no word character may follow here."""


def parse_integer(text: str, base: int = 10) -> int:
    """Parse an integer as Python 3.7's ``int`` does, with digits of any script.

    Raises ValueError if the text is not an integer.
    """
    return int(_convert_digits(text), base)


def parse_float(text: str) -> float:
    """Parse a number as Python 3.7's ``float`` does. Raises ValueError if the text is not a number."""
    return float(_convert_digits(text))


def _convert_digits(text: str) -> str:
    """Replace the decimal digits of all scripts by ASCII digits.

    Raises ValueError for a character that no number contains.
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
    """Return Python 3.7's ``repr`` of a string. Characters not printable in Unicode 11.0 are escaped."""
    # Like Python, use double quotes only if the text has single quotes and no double quotes.
    quote = '"' if "'" in text and '"' not in text else "'"
    return quote + "".join(_format_character(character, quote) for character in text) + quote


def _format_character(character: str, quote: str) -> str:
    code = ord(character)
    if character in (quote, "\\"):
        return "\\" + character
    if character in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[character]
    if _is_printable(character):
        return character
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _is_printable(character: str) -> bool:
    if character in " \u2028\u2029":
        return character == " "
    return not (is_space(character) or is_control(character) or is_unassigned(character))
