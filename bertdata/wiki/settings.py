"""Settings of an extraction."""

import datetime
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from bertdata.errors import SettingsError

ExtractorName = Literal["3.1.0", "mlperf", "2.75"]
EXTRACTORS: tuple[ExtractorName, ...] = ("3.1.0", "mlperf")

SPELLINGS: dict[str, ExtractorName] = {"2.75": "mlperf"}
"""Other names of extractors: what the program calls itself that MLPerf, NVIDIA and Habana pin."""

VERSIONS: dict[str, str] = {"3.1.0": "3.1.0", "mlperf": "3162bb6c3c9ebd2d15be507aa11d6fa818a454ac"}
"""The version of wikiextractor that each is equal to: a release, or a commit.

NVIDIA's and Habana's scripts pin commit 6408a430. It differs from MLPerf's 3162bb6 in the reading of
compressed files, in an escape that is switched off, and in ids of revisions that no output shows: the
articles are equal.
"""


def writes_escapes(program: Mapping[str, str]) -> bool:
    """Return whether the program of a manifest escapes ``&``, ``<`` and ``>`` in the text of articles."""
    return program["version"] == VERSIONS["3.1.0"]


_NAME_DATE = r"-(\d{4})(\d\d)(\d\d)(?=[-.])"


class _Fields(NamedTuple):
    extractor: ExtractorName
    date: datetime.date | None
    templates: bool
    max_page_bytes: int
    skip_pages: tuple[str, ...]


class ExtractSettings(_Fields):
    """Settings that decide the articles' bytes.

    extractor: the program to be equal to: wikiextractor 3.1.0, or version 2.75 as MLPerf pins
        it ("mlperf" or "2.75").
    date: the day that ``{{CURRENTDAY}}`` and its relatives expand to, at midnight; None: the dump's
        own, which is the date in its file name (enwiki-20200101-...), else its newest revision's day.
    templates: whether templates are collected in a first pass and expanded; None: as the program does
        by default, 3.1.0 does and 2.75 does not.
    max_page_bytes: a page with more XML than this is skipped, so that a damaged dump cannot fill the
        memory; MediaWiki itself allows 2 MiB of text.
    skip_pages: ids of pages to leave out, articles or templates; kept sorted, each once.
    """

    __slots__ = ()

    def __new__(
        cls,
        extractor: ExtractorName = "3.1.0",
        date: datetime.date | None = None,
        templates: bool | None = None,
        max_page_bytes: int = 256 << 20,
        skip_pages: tuple[str, ...] = (),
    ) -> "ExtractSettings":
        extractor = SPELLINGS.get(extractor, extractor)
        if extractor not in EXTRACTORS:
            known = ", ".join((*EXTRACTORS, *SPELLINGS))
            raise SettingsError(f"extractor is {extractor!r}, expected one of {known}")
        if max_page_bytes < 1:
            raise SettingsError(f"max_page_bytes is {max_page_bytes}, expected at least 1")
        if "" in skip_pages:
            raise SettingsError("skip_pages has an empty id, expected ids of pages")
        expands = extractor == "3.1.0" if templates is None else templates
        ids = sorted(set(skip_pages), key=lambda page_id: (len(page_id), page_id))  # numbers by size
        return super().__new__(cls, extractor, date, expands, max_page_bytes, tuple(ids))

    def as_json(self, day: datetime.date | None) -> dict[str, Any]:
        """The settings as a manifest has them. day: that is known before the dump is read."""
        skip_pages = {"skip_pages": list(self.skip_pages)} if self.skip_pages else {}
        return {
            "date": day and day.isoformat(),
            "templates": self.templates,
            "max_page_bytes": self.max_page_bytes,
            **skip_pages,
        }

    @property
    def program(self) -> dict[str, str]:
        """Name and version of the program, as a manifest has them."""
        return {"name": "wikiextractor", "version": VERSIONS[self.extractor]}

    def day_of(self, dump: str) -> datetime.date | None:
        """The day that is given, or that stands in the dump's file name. None where only its pages tell."""
        return self.date or name_date(dump)


def name_date(name: str) -> datetime.date | None:
    """The date in a dump's file name, as in ``enwiki-20200101-pages-articles.xml.bz2``."""
    for found in re.finditer(_NAME_DATE, name):
        try:
            return datetime.date(*map(int, found.groups()))
        except ValueError:
            continue
    return None
