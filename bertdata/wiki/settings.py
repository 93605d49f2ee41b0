"""Settings of an extraction from a Wikipedia dump."""

import datetime
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from bertdata.errors import SettingsError

ExtractorName = Literal["3.1.0", "mlperf", "2.75"]
EXTRACTORS: tuple[ExtractorName, ...] = ("3.1.0", "mlperf")

SPELLINGS: dict[str, ExtractorName] = {"2.75": "mlperf"}
"""Other names of the extractors. "2.75" is the version that the wikiextractor of MLPerf prints."""

VERSIONS: dict[str, str] = {"3.1.0": "3.1.0", "mlperf": "3162bb6c3c9ebd2d15be507aa11d6fa818a454ac"}
"""For each extractor, the version of wikiextractor that it reproduces: a release or a commit.

The scripts of NVIDIA and Habana use the commit 6408a430 instead of MLPerf's 3162bb6. The two differ in how
they read compressed files, in escaping that is switched off, and in revision ids that no output shows. Their
articles are the same.
"""


def writes_escapes(program: Mapping[str, str]) -> bool:
    """Return True if an extractor leaves ``&amp;`` and so on escaped in the text of articles.

    program: name and version of the extractor, in the form that a manifest of articles has.
    """
    return program["version"] == VERSIONS["3.1.0"]


_NAME_DATE = r"-(\d{4})(\d\d)(\d\d)(?=[-.])"


class _Fields(NamedTuple):
    """Fields of ``ExtractSettings``, which checks their values."""

    extractor: ExtractorName
    date: datetime.date | None
    templates: bool
    max_page_bytes: int
    skip_pages: tuple[str, ...]


class ExtractSettings(_Fields):
    """Settings that determine the content of the articles.

    extractor: program to reproduce: "3.1.0" for wikiextractor 3.1.0, or "mlperf" or "2.75" for the older
        wikiextractor that MLPerf uses.
    date: day that replaces ``{{CURRENTDAY}}`` and similar words, which are expanded as at midnight of this
        day. None means the date in the dump's file name (enwiki-20200101-...). If the name has no date, it
        means the day of the dump's newest revision.
    templates: whether to collect templates in a first pass, and to expand them. None means the default of the
        program, which is True for 3.1.0 and False for MLPerf's version.
    max_page_bytes: a page with more bytes of XML is skipped, so that a damaged dump cannot fill the memory.
        MediaWiki allows 2 MiB of text in a page.
    skip_pages: ids of articles and templates to leave out. They are stored sorted and without repetitions.
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
        # Sort the ids by their numeric value.
        ids = sorted(set(skip_pages), key=lambda page_id: (len(page_id), page_id))
        return super().__new__(cls, extractor, date, expands, max_page_bytes, tuple(ids))

    def as_json(self, day: datetime.date | None) -> dict[str, Any]:
        """Return the settings in the form that a manifest has.

        day: day that replaces ``{{CURRENTDAY}}`` and similar words. None if it must be found in the pages of
            the dump.
        """
        skip_pages = {"skip_pages": list(self.skip_pages)} if self.skip_pages else {}
        return {
            "date": day and day.isoformat(),
            "templates": self.templates,
            "max_page_bytes": self.max_page_bytes,
            **skip_pages,
        }

    @property
    def program(self) -> dict[str, str]:
        """Name and version of the program to reproduce, in the form that a manifest has."""
        return {"name": "wikiextractor", "version": VERSIONS[self.extractor]}

    def find_day(self, dump: str) -> datetime.date | None:
        """Return the day that replaces ``{{CURRENTDAY}}`` and similar words, from the settings or the dump's
        file name.

        Returns None if neither of them has a date. In this case the day of the dump's newest revision is
        used.
        """
        return self.date or parse_name_date(dump)


def parse_name_date(name: str) -> datetime.date | None:
    """Return the date in a dump's file name, such as ``enwiki-20200101-pages-articles.xml.bz2``, or None."""
    for found in re.finditer(_NAME_DATE, name):
        try:
            return datetime.date(*map(int, found.groups()))
        except ValueError:
            continue
    return None
