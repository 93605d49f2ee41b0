"""Replaces the apostrophes that mark bold and italic text, in the same way as WikiExtractor."""

import re

_BOTH = re.compile(r"'{5}(.*?)'{5}")
_BOLD = re.compile(r"'{3}(.*?)'{3}")
_QUOTED_ITALIC = re.compile("''\"([^\"]*)\"''")
_ITALIC = re.compile(r"''(.*?)''")
_DOUBLE_QUOTED = re.compile('""([^"]*)""')


def replace_quotes(text: str) -> str:
    """Remove the apostrophes of bold text, and replace those of italic text by quotation marks.

    A mark without a partner on the same line is treated in the same way.
    """
    # Replace the longest marks first. For example, "'''''both''''' '''bold''' ''italic''" becomes 'both bold
    # "italic"'.
    if "''" in text:
        text = _BOTH.sub(r"\1", text)
        text = _BOLD.sub(r"\1", text)
        text = _QUOTED_ITALIC.sub(r'"\1"', text)
        text = _ITALIC.sub(r'"\1"', text)
    text = _DOUBLE_QUOTED.sub(r'"\1"', text)
    return text.replace("'''", "").replace("''", '"')
