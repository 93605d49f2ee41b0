"""Settings of an extraction."""

import datetime
import re
from dataclasses import dataclass

from bertdata.errors import SettingsError

_NAME_DATE = re.compile(r"-(\d{4})(\d\d)(\d\d)(?=[-.])")


@dataclass(frozen=True, kw_only=True, slots=True)
class ExtractSettings:
    """Settings that decide the articles' bytes.

    date: the day that ``{{CURRENTDAY}}`` and its relatives expand to, at midnight; None: the dump's
        own, which is the date in its file name (enwiki-20200101-...), else its newest revision's day.
    templates: whether templates are collected in a first pass and expanded.
    max_page_bytes: a page with more XML than this is skipped, so that a damaged dump cannot fill the
        memory; MediaWiki itself allows 2 MiB of text.
    skip_pages: ids of pages to leave out, articles or templates; kept sorted, each once.
    """

    date: datetime.date | None = None
    templates: bool = True
    max_page_bytes: int = 256 << 20
    skip_pages: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.max_page_bytes < 1:
            raise SettingsError(f"max_page_bytes is {self.max_page_bytes}, expected at least 1")
        if "" in self.skip_pages:
            raise SettingsError("skip_pages has an empty id, expected ids of pages")
        ids = sorted(set(self.skip_pages), key=lambda page_id: (len(page_id), page_id))  # numbers by size
        object.__setattr__(self, "skip_pages", tuple(ids))

    def day_of(self, dump: str) -> datetime.date | None:
        """The day that is given, or that stands in the dump's file name; None where only its pages tell."""
        return self.date or name_date(dump)


def name_date(name: str) -> datetime.date | None:
    """The date in a dump's file name, as in ``enwiki-20200101-pages-articles.xml.bz2``."""
    for found in _NAME_DATE.finditer(name):
        try:
            return datetime.date(*map(int, found.groups()))
        except ValueError:
            continue
    return None
