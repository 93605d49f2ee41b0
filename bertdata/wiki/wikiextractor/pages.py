"""Reads pages from a piece of a dump, in the same way as the package wikiextractor.

The fields of a page are cut out without replacing XML entities. When the page is rendered, wikiextractor
replaces the few entities that MediaWiki writes. A page is never passed to an XML parser, so an entity that a
dump declares is never expanded.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bertdata.wiki.pages import (
    BAD_UTF8,
    CUT_OFF,
    MALFORMED,
    REDIRECT,
    TEMPLATE_TITLE,
    Skipped,
    describe_page,
)

PAGE_TAG = re.compile(rb"<(/?)page(?:\s[^>]*)?>")
_TITLE = re.compile(r"<title>([^<]+)</title>")
_NAMESPACE = re.compile(r"<ns>([^<]*)</ns>")
_ID = re.compile(r"<id>([^<]+)</id>")
_REDIRECT = re.compile(r"<redirect\b")
_TEXT = re.compile(r"<text\b[^>]*>")


@dataclass(frozen=True, slots=True, kw_only=True)
class RawPage:
    """XML of a page, from ``<page>`` to ``</page>``.

    If one of the two tags is missing, it is a part of a page.

    whole: whether both tags are there.
    begin: position of the page in its block.
    """

    data: bytes
    whole: bool
    begin: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of the dump that is an article. Its fields are escaped as in the dump."""

    page_id: str
    title: str
    text: str


def split_pages(data: bytes) -> Iterator[RawPage]:
    """Split a block into its pages, and yield them. A page with a missing tag is marked as not whole."""
    # start: position of the current page, or None outside of a page.
    # behind: end of the last tag.
    # A closing tag outside of a page ends a page that is not whole. An opening tag inside a page does so too.
    start: int | None = None
    behind = 0
    for tag in PAGE_TAG.finditer(data):
        if tag[1]:
            begin = behind if start is None else start
            yield RawPage(data=data[begin : tag.end()], whole=start is not None, begin=begin)
            start = None
        else:
            if start is not None:
                yield RawPage(data=data[start : tag.start()], whole=False, begin=start)
            start = tag.start()
        behind = tag.end()
    if start is not None:
        yield RawPage(data=data[start:], whole=False, begin=start)


def read_page(page: RawPage, template_namespace: str) -> Page | Skipped:
    """Read the fields of a page. If the page is not an article, return the reason why it is skipped.

    An article is a page in namespace 0 that is not a redirect, and whose title does not start with the name
    of the namespace of templates. As in wikiextractor, a page such as "Template engine" is therefore not an
    article.
    """
    if not page.whole:
        return Skipped(reason=CUT_OFF, name=describe_page(page.data))
    try:
        content = page.data.decode()
    except UnicodeDecodeError:
        return Skipped(reason=BAD_UTF8, name=describe_page(page.data))
    header = _cut_head(content)
    namespace = _NAMESPACE.search(header)
    title, page_id = _TITLE.search(header), _ID.search(header)
    if namespace is None or title is None or page_id is None:
        return Skipped(reason=MALFORMED, name=describe_page(page.data))
    if namespace[1] != "0":
        return Skipped(reason=f"namespace {namespace[1]}")
    if _REDIRECT.search(header):
        return Skipped(reason=REDIRECT)
    if title[1].startswith(template_namespace):
        return Skipped(reason=TEMPLATE_TITLE)
    text = read_page_text(content)
    if text is None:
        return Skipped(reason=MALFORMED, name=describe_page(page.data))
    return Page(page_id=page_id[1], title=title[1], text=text)


def _cut_head(content: str) -> str:
    """Return the part of a page's XML that is before the text of the page."""
    text = _TEXT.search(content)
    return content if text is None else content[: text.start()]


def read_page_text(content: str) -> str | None:
    """Return the text of a page. If the page has several revisions, their texts are joined.

    Returns None if ``</text>`` is missing.
    """
    texts = []
    end = 0
    while (tag := _TEXT.search(content, end)) is not None:
        end = tag.end()
        if tag[0].endswith("/>"):
            continue
        end = content.find("</text>", tag.end())
        if end < 0:
            return None
        texts.append(content[tag.end() : end])
    return "".join(texts)
