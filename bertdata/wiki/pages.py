"""Reasons for skipping a page of a dump, and the page's name for messages."""

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
"""The page exceeds a limit of a kernel. This ends the run and is not a reason to skip the page."""
UNKNOWN = "unknown"
"""The kernel cannot handle the page and leaves it to the package. This is not a reason to skip the page."""

FAULTS = (CUT_OFF, TOO_LARGE, BAD_UTF8, MALFORMED, FAILED)
"""Reasons that mean damage or failure. Each such page is reported by name and not only counted."""


class Skipped(NamedTuple):
    """Page that is not written, and why.

    name: name of the page if the reason is a fault, its id if the user left it out.
    """

    reason: str
    name: str = ""


def read_page_id(data: bytes) -> str:
    """Return the id of a page, empty if it has none."""
    return _read_element(data, b"id")


def read_page_title(data: bytes) -> str:
    """Return the title of a page as the dump writes it, empty if it has none."""
    return _read_element(data[:_TITLE_BYTES], b"title")


def describe_page(data: bytes) -> str:
    """Return title and id of a page for a message, as far as they can be read."""
    number = _read_element(data[:_TITLE_BYTES], b"id")
    return f"{read_page_title(data) or 'untitled page'!r} (id {number or 'unknown'})"


def _read_element(data: bytes, name: bytes) -> str:
    """Return the content of an element before the page's text, empty if there is none."""
    text = re.search(rb"<text\b", data)
    found = re.search(b"<%b>([^<]+)</%b>" % (name, name), data if text is None else data[: text.start()])
    return "" if found is None else found[1].decode(errors="replace")
