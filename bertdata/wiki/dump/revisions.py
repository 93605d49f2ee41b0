"""Count the revisions of a dump's pages, and find the day of the newest revision.

A dump with histories has several revisions per page. If no other day is known, dates in articles are frozen
at the day of the newest revision. Twin of _native/wiki/revisions.h.
"""

import re
from datetime import date

from bertdata._native import Engine, kernels, use_native
from bertdata.errors import SettingsError

_TAG = b"<revision>"

_TIMESTAMP = rb"<timestamp>(\d{4}-\d\d-\d\d)T[\d:]+Z</timestamp>"


def count_revisions(data: bytes, engine: Engine) -> int:
    """Count the tags ``<revision>`` in the data.

    Text in a dump is escaped, so every such tag is a revision.
    """
    if use_native(engine):
        found: int = kernels.count_revisions(data)
        return found
    return data.count(_TAG)


def has_several_revisions(page: bytes) -> bool:
    """Return whether the page holds more than one revision."""
    return page.count(_TAG) > 1


def find_newest_day(data: bytes) -> str:
    """Return the day of the newest revision in the data as YYYY-MM-DD, empty if there is none."""
    return max(re.findall(_TIMESTAMP, data), default=b"").decode()


def parse_timestamp(day: str) -> date | None:
    """Return the day as a date, or None for a text that is not a date."""
    try:
        return date.fromisoformat(day)
    except ValueError:
        return None


def choose_frozen_day(dump: str, known: date | None, newest: str) -> date:
    """Choose the day that ``{{CURRENTDAY}}`` and similar words in articles expand to.

    known: day from the settings or the dump's file name, which takes precedence, or None.
    newest: day of the newest revision as YYYY-MM-DD, or empty.
    dump: path of the dump, for the error.

    Raises SettingsError if there is neither.
    """
    day = known or parse_timestamp(newest)
    if day is None:
        raise SettingsError(
            f"{dump}: has no date in its name and no dated revision; give the date that "
            "{{CURRENTDAY}} and its relatives shall expand to (--date)"
        )
    return day
