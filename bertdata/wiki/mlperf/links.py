"""Replaces internal links: ``[[title|label]]`` becomes its label."""

import re

_MARK = re.compile(r"\[\[|\]\]")
_PREFIXES = ("w", "wiktionary", "wikt")
"""Prefixes of titles whose links are replaced by their labels. Links with any other prefix are removed."""


def replace_links(text: str) -> str:
    """Replace each outermost link by its label.

    If a link is never closed, this link and all text after it stay unchanged.
    """
    pieces: list[str] = []
    end = 0
    for begin, behind in _find_links(text):
        pieces += [text[end:begin], _choose_label(text[begin + 2 : behind - 2])]
        end = behind
    return "".join([*pieces, text[end:]])


def _find_links(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each outermost link in double brackets."""
    links: list[tuple[int, int]] = []
    depth = begin = 0
    for mark in _MARK.finditer(text):
        if mark[0] == "[[":
            if not depth:
                begin = mark.start()
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                links.append((begin, mark.end()))
    return links


def _choose_label(inside: str) -> str:
    """Return the text that replaces a link: its label, or an empty text for a prefix such as ``File:``.

    inside: text between the brackets of the link.
    """
    # For example, "Title|option|label with [[nested|link]]" gives "label with [[nested|link]]". If there is a
    # nested link, the bars before it separate options, and the label comes after the last of them. If there
    # is none, the label comes after the first bar.
    bar = inside.find("|")
    if bar < 0:
        return inside if _is_label_kept(inside) else ""
    title = inside[:bar].rstrip()
    searched = bar + 1
    for begin, behind in _find_links(inside):
        last = inside.rfind("|", searched, begin)
        if last >= 0:
            bar = last  # The label comes after the last bar before the nested link.
        searched = behind
    return inside[bar + 1 :].strip() if _is_label_kept(title) else ""


def _is_label_kept(title: str) -> bool:
    """Return True if a link with this title is replaced by its label, and False if it is removed."""
    # "wikt:word" and "Berlin" give True, and "Category:Towns" gives False. A colon at the start, as in
    # ":Category:Towns", is ignored, and the prefix after it decides.
    colon = title.find(":")
    if colon > 0:
        return title[:colon] in _PREFIXES
    second = title.find(":", 1) if colon == 0 else -1
    return second <= 1 or title[1:second] in _PREFIXES
