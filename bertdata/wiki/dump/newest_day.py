"""The newest revision's day of a dump, which its articles' dates are frozen at where no other is given."""

import re
from datetime import date

from bertdata.errors import SettingsError

_TIMESTAMP = rb"<timestamp>(\d{4}-\d\d-\d\d)T[\d:]+Z</timestamp>"


def newest_timestamp(data: bytes) -> str:
    """The day of the newest revision in the data as YYYY-MM-DD, empty where there is none."""
    return max(re.findall(_TIMESTAMP, data), default=b"").decode()


def parse_timestamp(day: str) -> date | None:
    """The day, None for a text that is no date."""
    try:
        return date.fromisoformat(day)
    except ValueError:
        return None


def frozen_day(dump: str, known: date | None, newest: str) -> date:
    """The day that dates are frozen at: the one known, else the newest revision's. SettingsError if none.

    dump: its path, for the error.
    """
    day = known or parse_timestamp(newest)
    if day is None:
        raise SettingsError(
            f"{dump}: has no date in its name and no dated revision; give the date that "
            "{{CURRENTDAY}} and its relatives shall expand to (--date)"
        )
    return day
