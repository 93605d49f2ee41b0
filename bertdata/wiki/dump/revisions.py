"""Counts the revisions of a dump's pages, and finds the day of the newest revision.

A dump with page histories has several revisions of each page. The day of the newest revision replaces the
current date in articles if no other day is known. The C++ version of this code is _native/wiki/revisions.h.
"""

import re
from datetime import date

from bertdata._native import Engine, kernels, use_native
from bertdata.errors import SettingsError

_TAG = b"<revision>"

_TIMESTAMP = rb"<timestamp>(\d{4}-\d\d-\d\d)T[\d:]+Z</timestamp>"


def count_revisions(data: bytes, engine: Engine) -> int:
    """Count the revisions in the data, which are the tags ``<revision>``.

    Text in a dump is escaped, so no text contains such a tag.
    """
    if use_native(engine):
        found: int = kernels.count_revisions(data)
        return found
    return data.count(_TAG)


def has_several_revisions(page: bytes) -> bool:
    """Return True if the page contains more than one revision."""
    return page.count(_TAG) > 1


def find_newest_day(data: bytes) -> str:
    """Return the day of the newest revision in the data as YYYY-MM-DD, or an empty text if there is none."""
    return max(re.findall(_TIMESTAMP, data), default=b"").decode()


def parse_timestamp(day: str) -> date | None:
    """Convert a day, written as YYYY-MM-DD, to a date. Returns None if the text is not a date."""
    try:
        return date.fromisoformat(day)
    except ValueError:
        return None


def choose_frozen_day(dump: str, known: date | None, newest: str) -> date:
    """Choose the day that replaces ``{{CURRENTDAY}}`` and similar words in articles.

    dump: path of the dump, for the error message.
    known: day from the settings or from the dump's file name, which takes precedence, or None.
    newest: day of the newest revision as YYYY-MM-DD, or empty.

    Raises SettingsError if neither day is known.
    """
    day = known or parse_timestamp(newest)
    if day is None:
        raise SettingsError(
            f"{dump}: has no date in its name and no dated revision; give the date that "
            "{{CURRENTDAY}} and its relatives shall expand to (--date)"
        )
    return day
