"""Outcomes of a page of a dump, and its name for a person."""

import re
from typing import NamedTuple

_TITLE_BYTES = 4096
"""A title is looked for in so much of a page."""

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
"""The page breaks a limit of a kernel, which ends the run: no reason to skip it."""
UNKNOWN = "unknown"
"""The page holds a construct that the kernel leaves to the package; no reason to skip it."""

FAULTS = (CUT_OFF, TOO_LARGE, BAD_UTF8, MALFORMED, FAILED)
"""Reasons that mean damage or failure: each such page is reported by name, not only counted."""


class Skipped(NamedTuple):
    """A page that is not written, and why.

    ``name`` says which one, where the reason is a fault; it is the id of a page that is left out.
    """

    reason: str
    name: str = ""


def page_id(data: bytes) -> str:
    """The id of a page, empty where it has none."""
    return _element(data, b"id")


def page_title(data: bytes) -> str:
    """The title of a page as it stands in the dump, empty where it has none."""
    return _element(data[:_TITLE_BYTES], b"title")


def page_name(data: bytes) -> str:
    """Title and id of a page, as far as they can be read, for a person who looks for it."""
    number = _element(data[:_TITLE_BYTES], b"id")
    return f"{page_title(data) or 'untitled page'!r} (id {number or 'unknown'})"


def _element(data: bytes, name: bytes) -> str:
    """The content of an element in the part of a page before its text, empty where there is none."""
    text = re.search(rb"<text\b", data)
    found = re.search(b"<%b>([^<]+)</%b>" % (name, name), data if text is None else data[: text.start()])
    return "" if found is None else found[1].decode(errors="replace")
