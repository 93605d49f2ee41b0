"""Reasons why a page of a dump gives no article, and functions that read the id and the title of a page."""

import re
from typing import NamedTuple

_TITLE_BYTES = 4096
"""Number of bytes at the start of a page in which its title is searched for."""

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
"""Reason: the page exceeds a limit of a kernel. The page is not skipped, but the run ends with an error."""
UNKNOWN = "unknown"
"""Reason: the kernel cannot handle the page.

The page is not skipped, but the package wikiextractor extracts it.
"""

FAULTS = (CUT_OFF, TOO_LARGE, BAD_UTF8, MALFORMED, FAILED)
"""Reasons that mean damage or failure. Pages with these reasons are not only counted but reported by name."""


class Skipped(NamedTuple):
    """Reason why a page is skipped.

    reason: one of the constants of this module.
    name: title and id of the page if the reason is one of FAULTS. The id alone if the user left the page out.
    """

    reason: str
    name: str = ""


def read_page_id(data: bytes) -> str:
    """Return the id in the XML of a page, or an empty text if it has none."""
    return _read_element(data, b"id")


def read_page_title(data: bytes) -> str:
    """Return the title in the XML of a page, or an empty text if it has none.

    ``&amp;`` and so on stay escaped.
    """
    return _read_element(data[:_TITLE_BYTES], b"title")


def describe_page(data: bytes) -> str:
    """Return the title and the id of a page, for a message.

    A page without a title is called untitled, and a missing id is called unknown.
    """
    number = _read_element(data[:_TITLE_BYTES], b"id")
    return f"{read_page_title(data) or 'untitled page'!r} (id {number or 'unknown'})"


def _read_element(data: bytes, name: bytes) -> str:
    """Return the content of an XML element that is before the text of a page, or an empty text if it is
    missing.

    name: name of the element.
    """
    text = re.search(rb"<text\b", data)
    found = re.search(b"<%b>([^<]+)</%b>" % (name, name), data if text is None else data[: text.start()])
    return "" if found is None else found[1].decode(errors="replace")
