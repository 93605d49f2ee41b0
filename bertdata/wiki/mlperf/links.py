"""Replace internal links: ``[[title|label]]`` becomes its label."""

import re

_MARK = re.compile(r"\[\[|\]\]")
_PREFIXES = ("w", "wiktionary", "wikt")
"""Title prefixes whose links are kept. A link with any other prefix is removed."""


def replace_links(text: str) -> str:
    """Replace each outermost link by its label. A link that is never closed stays, with all text after it."""
    pieces: list[str] = []
    end = 0
    for begin, behind in _find_links(text):
        pieces += [text[end:begin], _choose_label(text[begin + 2 : behind - 2])]
        end = behind
    return "".join([*pieces, text[end:]])


def _find_links(text: str) -> list[tuple[int, int]]:
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
    """Return the text that replaces a link: its label, or nothing if its title has a prefix like ``File:``.

    inside: text between the brackets of the link.
    """
    # "Title|option|label with [[nested|link]]" -> "label with [[nested|link]]": bars before a nested link
    # separate options. Without a nested link the label starts after the first bar.
    bar = inside.find("|")
    if bar < 0:
        return inside if _is_label_kept(inside) else ""
    title = inside[:bar].rstrip()
    searched = bar + 1
    for begin, behind in _find_links(inside):
        last = inside.rfind("|", searched, begin)
        if last >= 0:
            bar = last  # the label is what follows the last option before a link
        searched = behind
    return inside[bar + 1 :].strip() if _is_label_kept(title) else ""


def _is_label_kept(title: str) -> bool:
    # "wikt:word" stays, "Category:Towns" is removed, "Berlin" stays. A colon in front, as in
    # ":Category:Towns", is ignored: the prefix after it decides.
    colon = title.find(":")
    if colon > 0:
        return title[:colon] in _PREFIXES
    second = title.find(":", 1) if colon == 0 else -1
    return second <= 1 or title[1:second] in _PREFIXES
