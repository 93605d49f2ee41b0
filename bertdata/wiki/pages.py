"""Reasons why no article is made from a page of a dump, and functions that read id and title of a page."""

import re
from typing import NamedTuple

_TITLE_BYTES = 4096
"""The title is searched for in this many bytes of a page."""

CUT_OFF = "cut off"
TOO_LARGE = "too large"
BAD_UTF8 = "invalid UTF-8"
MALFORMED = "malformed"
REDIRECT = "redirect"
TEMPLATE_TITLE = "title begins like a template's"
DUPLICATE = "same id as the article before"
FAILED = "extraction failed"
LEFT_OUT_PAGE = "left out by --skip-page"
LIMIT = "limit"
"""The page exceeds a limit of a kernel. Such a page is not skipped: it ends the run with an error."""
UNKNOWN = "unknown"
"""The kernel cannot handle the page. Such a page is not skipped: the package wikiextractor extracts it."""

FAULTS = (CUT_OFF, TOO_LARGE, BAD_UTF8, MALFORMED, FAILED)
"""Reasons that mean damage or failure. Each such page is reported by name and not only counted."""


class Skipped(NamedTuple):
    """Reason why a page is skipped.

    name: title and id of the page if the reason is one of FAULTS. Its id alone if the user left it out.
    """

    reason: str
    name: str = ""


def read_page_id(data: bytes) -> str:
    """Return the id in a page's XML, empty if it has none."""
    return _read_element(data, b"id")


def read_page_title(data: bytes) -> str:
    """Return the title in a page's XML, with ``&amp;`` and so on, empty if it has none."""
    return _read_element(data[:_TITLE_BYTES], b"title")


def describe_page(data: bytes) -> str:
    """Return title and id of a page for a message. A missing title or id is called untitled or unknown."""
    number = _read_element(data[:_TITLE_BYTES], b"id")
    return f"{read_page_title(data) or 'untitled page'!r} (id {number or 'unknown'})"


def _read_element(data: bytes, name: bytes) -> str:
    """Return the content of an XML element that comes before the page's text, empty if it is missing."""
    text = re.search(rb"<text\b", data)
    found = re.search(b"<%b>([^<]+)</%b>" % (name, name), data if text is None else data[: text.start()])
    return "" if found is None else found[1].decode(errors="replace")
