"""Replaces character references such as ``&nbsp;``, ``&#65;`` and ``&#x41;`` by their characters."""

import re
from html.entities import name2codepoint  # HTML 4's 252 names

from bertdata.wiki.mlperf.characters import WORD, parse_integer

_REFERENCE = re.compile(f"&(#?)([{WORD}]+);")
_HIGHLIGHT, _END_TAG, _END_HIGHLIGHT = "&lt;syntaxhighlight ", "&gt;", "&lt;/syntaxhighlight&gt;"


def unescape(text: str) -> str:
    """Replace each character reference by its character. An unknown reference stays unchanged.

    The result is not searched again: ``&amp;lt;`` becomes ``&lt;``.
    """
    return _REFERENCE.sub(_resolve_reference, text) if "&" in text else text


def _resolve_reference(reference: re.Match[str]) -> str:
    """Return the character that a reference stands for, or the reference itself if it is unknown."""
    name = reference[2]
    try:
        if not reference[1]:
            return chr(name2codepoint[name])
        return chr(parse_integer(name[1:], 16) if name.startswith("x") else parse_integer(name))
    except (KeyError, ValueError, OverflowError):
        return reference[0]


def unescape_article(text: str) -> str:
    """Unescape the text, except inside ``syntaxhighlight`` elements, of which only the tags are removed."""
    # The tags of the elements are still escaped here, so search for the escaped form. For example:
    # "&lt;syntaxhighlight lang="c"&gt;a &amp;lt; b&lt;/syntaxhighlight&gt;"
    pieces: list[str] = []
    end = 0
    while (begin := text.find(_HIGHLIGHT, end)) >= 0:
        content = text.find(_END_TAG, begin + len(_HIGHLIGHT))
        if content < 0:
            break
        behind = text.find(_END_HIGHLIGHT, content + len(_END_TAG))
        if behind < 0:
            break
        pieces += [unescape(text[end:begin]), text[content + len(_END_TAG) : behind]]
        end = behind + len(_END_HIGHLIGHT)
    return "".join([*pieces, unescape(text[end:])])
