"""Removes comments and tags, and some elements together with their content."""

import re
from collections.abc import Callable, Iterator
from heapq import merge

from bertdata.wiki.mlperf.brackets import Mark, Search, remove_enclosed
from bertdata.wiki.mlperf.characters import EDGE
from bertdata.wiki.mlperf.work import Work, count_bytes

_SELF_CLOSING = ("br", "hr", "nobr", "ref", "references", "nowiki")
_IGNORED = (
    *(
        "abbr",
        "b",
        "big",
        "blockquote",
        "center",
        "cite",
        "em",
        "font",
        "h1",
        "h2",
        "h3",
        "h4",
        "hiero",
        "i",
        "kbd",
    ),
    *("p", "plaintext", "s", "span", "strike", "strong", "tt", "u", "var", "a"),
)
_DROPPED = (
    *(
        "gallery",
        "timeline",
        "noinclude",
        "pre",
        "table",
        "tr",
        "td",
        "th",
        "caption",
        "div",
        "form",
        "input",
    ),
    *("select", "option", "textarea", "ul", "li", "ol", "dl", "dt", "dd", "menu", "dir", "ref", "references"),
    *("img", "imagemap", "source", "small", "sub", "sup", "indicator"),
)

_SELF_CLOSING_NAME = re.compile(rf"<\s*(?:{'|'.join(_SELF_CLOSING)}){EDGE}", re.IGNORECASE)
_IGNORED_NAME = re.compile(rf"<(?:{'|'.join(_IGNORED)}){EDGE}", re.IGNORECASE)
_IGNORED_CLOSER = re.compile(rf"</\s*(?:{'|'.join(_IGNORED)})>", re.IGNORECASE)


def drop_tags(text: str) -> str:
    """Remove comments, self-closing tags, and formatting tags such as ``<b>``.

    The text between the tags stays.
    """
    if "<" not in text:
        return text
    kept: list[str] = []
    end = 0
    # Each of these functions searches the whole text. If two matches overlap, the match that starts first is
    # used.
    tags = (
        _find_comments(text),
        _find_closing_tags(text),
        _find_ignored_tags(text),
        _find_self_closing_tags(text),
    )
    for begin, behind in merge(*tags):
        if begin >= end:
            kept.append(text[end:begin])
            end = behind
    return "".join([*kept, text[end:]])


def _find_comments(text: str) -> Iterator[Mark]:
    """Yield the start and end of each comment."""
    begin = text.find("<!--")
    while begin >= 0 and (end := text.find("-->", begin + 4)) >= 0:
        yield begin, end + 3
        begin = text.find("<!--", end + 3)


def _find_closing_tags(text: str) -> Iterator[Mark]:
    """Yield the start and end of each closing tag that is removed."""
    return (tag.span() for tag in _IGNORED_CLOSER.finditer(text))


def _find_ignored_tags(text: str) -> Iterator[Mark]:
    """Yield the start and end of each opening tag that is removed, such as ``<b>``."""
    next_end = make_next_search(text, ">")
    for name in _IGNORED_NAME.finditer(text):
        end = next_end(name.end())
        if end < 0:
            return
        yield name.start(), end + 1


def _find_self_closing_tags(text: str) -> Iterator[Mark]:
    """Yield the start and end of each tag such as ``<br/>``."""
    next_end = make_next_search(text, ">")
    for name in _SELF_CLOSING_NAME.finditer(text):
        end = next_end(name.end())
        if end < 0:
            return
        if _ends_with_slash(text, name.end(), end):
            yield name.start(), end + 1


def _ends_with_slash(text: str, begin: int, end: int) -> bool:
    """Return True if a part of the text ends with a slash, apart from white space after it."""
    while end > begin and text[end - 1].isspace():
        end -= 1
    return end > begin and text[end - 1] == "/"


def make_next_search(text: str, characters: str) -> Callable[[int], int]:
    """Make a function that returns the next position of any of several characters in the text, or -1.

    The index from which the function searches must not decrease from call to call. The function remembers
    what it has found, so that all calls together read the text only once.
    """
    # For each character, its next position in the text. -2 means that it was not searched yet, and -1 that it
    # does not occur any more.
    found = dict.fromkeys(characters, -2)

    def find_next(begin: int) -> int:
        """Return the next position of any of the characters, from ``begin`` on, or -1."""
        for character, place in found.items():
            if place != -1 and place < begin:
                found[character] = text.find(character, begin)
        return min((place for place in found.values() if place >= 0), default=-1)

    return find_next


def drop_elements(text: str, work: Work) -> str:
    """Remove elements such as tables, references and lists, together with their content."""
    for tag in _DROPPED:
        if "<" not in text:
            return text
        if _is_present(text, tag):
            work.spend(count_bytes(text))
            text = remove_enclosed(text, _make_opener_search(text, tag), _make_closer_search(text, tag))
    return text


def _is_present(text: str, tag: str) -> bool:
    """Return True if the text contains both an opening and a closing tag of an element."""
    return all(re.search(rf"<\s*{slash}{tag}{EDGE}", text, re.IGNORECASE) for slash in ("", r"/\s*"))


def _make_opener_search(text: str, tag: str) -> Search:
    """Make a function that searches for the next opening tag of an element.

    A tag with a slash inside, such as ``<ref name="a/b">``, does not count.
    """
    pattern = re.compile(rf"<\s*{tag}{EDGE}", re.IGNORECASE)
    next_end = make_next_search(text, "/>")

    def find_tag(begin: int) -> Mark | None:
        """Return the position of the next opening tag from ``begin`` on, or None."""
        while (name := pattern.search(text, begin)) is not None:
            end = next_end(name.end())
            if end >= 0 and text[end] == ">":
                return name.start(), end + 1
            begin = name.end()
        return None

    return find_tag


def _make_closer_search(text: str, tag: str) -> Search:
    """Make a function that searches for the next closing tag of an element."""
    pattern = re.compile(rf"<\s*/\s*{tag}>", re.IGNORECASE)

    def find_tag(begin: int) -> Mark | None:
        """Return the position of the next closing tag from ``begin`` on, or None."""
        found = pattern.search(text, begin)
        return None if found is None else found.span()

    return find_tag


def number_elements(text: str, tag: str, placeholder: str, work: Work) -> str:
    """Replace each element with this tag by a numbered placeholder.

    The placeholders are ``placeholder_1``, ``placeholder_2`` and so on. If an element is equal to an earlier
    element, it gets the same number, and its own number is not used. For example, with the placeholder
    "formula", the elements A, B, A and C become formula_1, formula_2, formula_1 and formula_4.
    """
    marks = _find_elements(text, tag)
    elements = [text[begin:end] for begin, end in marks]
    opening = re.compile(rf"<\s*{tag}", re.IGNORECASE)
    # WikiExtractor replaces each element in the whole text before it goes on to the next element. This takes
    # quadratic time. If no element contains the opening tag of another, the text of an element occurs only as
    # an element, and going through the text once gives the same result.
    if not any(opening.search(element, 1) for element in elements):
        return _number_in_one_pass(text, marks, placeholder)
    for number, element in enumerate(elements, start=1):
        work.spend(count_bytes(text))
        text = text.replace(element, f"{placeholder}_{number}")
    return text


def _number_in_one_pass(text: str, marks: list[Mark], placeholder: str) -> str:
    """Replace elements by numbered placeholders, going through the text once.

    marks: start and end of each element. No element may contain an opening tag.
    """
    first: dict[str, int] = {}
    pieces, behind = [], 0
    for number, (begin, end) in enumerate(marks, start=1):
        pieces += [text[behind:begin], f"{placeholder}_{first.setdefault(text[begin:end], number)}"]
        behind = end
    return "".join([*pieces, text[behind:]])


def _find_elements(text: str, tag: str) -> list[Mark]:
    """Return the start and end of each element with this tag."""
    name = re.compile(rf"<\s*{tag}", re.IGNORECASE)
    closer = re.compile(rf"<\s*/\s*{tag}\s*>", re.IGNORECASE)
    next_end = make_next_search(text, ">")
    found: list[Mark] = []
    behind = 0
    while (opener := name.search(text, behind)) is not None:
        end = next_end(opener.end())
        if end < 0:
            break
        attributes = text[opener.end() : end]
        behind = opener.end()
        if not attributes.strip() or (attributes[0] == " " and len(attributes) > 1):
            close = closer.search(text, end + 1)
            if close is None:
                break
            found.append((opener.start(), close.end()))
            behind = close.end()
    return found
