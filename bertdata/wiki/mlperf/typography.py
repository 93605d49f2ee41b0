"""Spaces, dots, angle quotes, and lines of marks only."""

import re

from bertdata.wiki.mlperf.characters import WORD

_SPACES = re.compile("  +")
_DOTS = re.compile(r"\.{4,}")
_LINE_WITHOUT_WORDS = re.compile(f"\n[^{WORD}]+?\n")


def tidy(text: str) -> str:
    """The text with the original's rules of typography. The two literal ones hardly ever match anything."""
    text = text.replace("<<", "«").replace(">>", "»").replace("\t", " ")
    text = _SPACES.sub(" ", text)
    text = _DOTS.sub("...", text)
    text = text.replace(" ,:.)]»", ",:.)]»").replace("[(« ", "[(«")
    text = _LINE_WITHOUT_WORDS.sub("\n", text)
    return text.replace(",,", ",").replace(",.", ".")
