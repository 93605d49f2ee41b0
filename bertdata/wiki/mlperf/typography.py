"""Corrects spaces, dots and angle quotes, and removes lines without words."""

import re

from bertdata.wiki.mlperf.characters import WORD

_SPACES = re.compile("  +")
_DOTS = re.compile(r"\.{4,}")
_LINE_WITHOUT_WORDS = re.compile(f"\n[^{WORD}]+?\n")


def tidy_typography(text: str) -> str:
    """Apply WikiExtractor's rules for spaces and punctuation: for example, join several spaces to one, and
    shorten rows of dots.
    """
    text = text.replace("<<", "«").replace(">>", "»").replace("\t", " ")
    text = _SPACES.sub(" ", text)
    text = _DOTS.sub("...", text)
    # WikiExtractor was meant to replace any of these characters after a space. What it replaces is this whole
    # string of characters, which hardly ever occurs.
    text = text.replace(" ,:.)]»", ",:.)]»").replace("[(« ", "[(«")
    text = _LINE_WITHOUT_WORDS.sub("\n", text)
    return text.replace(",,", ",").replace(",.", ".")
