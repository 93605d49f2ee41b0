"""Tidy spaces, dots, angle quotes, and lines without words."""

import re

from bertdata.wiki.mlperf.characters import WORD

_SPACES = re.compile("  +")
_DOTS = re.compile(r"\.{4,}")
_LINE_WITHOUT_WORDS = re.compile(f"\n[^{WORD}]+?\n")


def tidy_typography(text: str) -> str:
    """Tidy the text by WikiExtractor's rules, for example join spaces and shorten rows of dots."""
    text = text.replace("<<", "«").replace(">>", "»").replace("\t", " ")
    text = _SPACES.sub(" ", text)
    text = _DOTS.sub("...", text)
    # WikiExtractor means any of these characters, but replaces the literal strings, which hardly ever occur.
    text = text.replace(" ,:.)]»", ",:.)]»").replace("[(« ", "[(«")
    text = _LINE_WITHOUT_WORDS.sub("\n", text)
    return text.replace(",,", ",").replace(",.", ".")
