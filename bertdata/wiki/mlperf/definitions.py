"""Reads the definition on the page of a template, and finds the title of the template that a call means."""

import re

from bertdata.unicode.characters import upper
from bertdata.wiki.mlperf.entities import unescape
from bertdata.wiki.mlperf.tags import make_next_search

_UNCLOSED_NOINCLUDE = re.compile(r"<noinclude\s*>")


def read_definition(escaped: str) -> str:
    """Return the definition of a template: the text that a call inserts, before its parameters are replaced.

    The result is empty if the page defines nothing.

    escaped: wikitext of the template's page, escaped as in the dump's XML.
    """
    # For example, "A<noinclude>docs</noinclude><includeonly>B</includeonly>" gives "AB".
    text = _drop_elements(unescape(escaped), "<!--", "-->")
    text = _drop_elements(text, "<noinclude>", "</noinclude>")
    # If a <noinclude> is not closed, the rest of the page is not part of the definition.
    if (unclosed := _UNCLOSED_NOINCLUDE.search(text)) is not None:
        text = text[: unclosed.start()]
    text = text.replace("<noinclude/>", "")
    # If there are <onlyinclude> elements, the definition is their content, and everything else is left out.
    only = "".join(_extract_contents(text, "<onlyinclude>", "</onlyinclude>"))
    return only or text.replace("<includeonly>", "").replace("</includeonly>", "")


def _drop_elements(text: str, opener: str, closer: str) -> str:
    """Remove all elements with these opening and closing tags, together with their content."""
    kept: list[str] = []
    end = 0
    for begin, behind in _find_elements(text, opener, closer):
        kept.append(text[end:begin])
        end = behind
    return "".join([*kept, text[end:]])


def _extract_contents(text: str, opener: str, closer: str) -> list[str]:
    """Return the content of each element with these opening and closing tags."""
    return [
        text[begin + len(opener) : end - len(closer)] for begin, end in _find_elements(text, opener, closer)
    ]


def _find_elements(text: str, opener: str, closer: str) -> list[tuple[int, int]]:
    """Return the start and end of each element with these opening and closing tags."""
    found: list[tuple[int, int]] = []
    end = 0
    while (begin := text.find(opener, end)) >= 0:
        close = text.find(closer, begin + len(opener))
        if close < 0:
            break
        end = close + len(closer)
        found.append((begin, end))
    return found


def find_definition_title(name: str, prefix: str, namespaces: frozenset[str]) -> str:
    """Return the title of the template page that a call means.

    name: name in the call, such as ``Infobox`` in ``{{Infobox|a}}``.
    prefix: name of the namespace of templates, with a colon.
    namespaces: names of all namespaces.
    """
    if name.startswith(":"):
        return name[1:]
    # This repeats an error of WikiExtractor, which recognises the name of a namespace only if it is a single
    # character.
    if name[1:2] == ":" and name[0] in namespaces:
        return name
    return prefix + upper(name[:1]) + name[1:]


def split_nowiki(text: str) -> list[tuple[str, str]]:
    """Split a text at its ``nowiki`` elements, whose content must not be expanded.

    Returns pairs of a text to expand and the ``nowiki`` element after it, which is empty at the end. As in
    WikiExtractor, an element is recognised only if both of its tags are on the same line.
    """
    if "<nowiki>" not in text:
        return [(text, "")]
    # For example, "a <nowiki>{{b}}</nowiki> c" gives [("a ", "<nowiki>{{b}}</nowiki>"), (" c", "")].
    pairs: list[tuple[str, str]] = []
    next_line = make_next_search(text, "\n")
    end = searched = 0
    close = -1
    while (begin := text.find("<nowiki>", searched)) >= 0:
        if close < begin and (close := text.find("</nowiki>", begin)) < 0:
            break
        line_end = next_line(begin)
        searched = begin + len("<nowiki>")
        if line_end < 0 or line_end > close:
            behind = searched = close + len("</nowiki>")
            pairs.append((text[end:begin], text[begin:behind]))
            end = behind
    return [*pairs, (text[end:], "")]
