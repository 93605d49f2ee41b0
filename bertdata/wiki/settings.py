"""Settings of an extraction from a Wikipedia dump."""

import datetime
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from bertdata.errors import SettingsError

ExtractorName = Literal["3.1.0", "mlperf", "2.75"]
EXTRACTORS: tuple[ExtractorName, ...] = ("3.1.0", "mlperf")

SPELLINGS: dict[str, ExtractorName] = {"2.75": "mlperf"}
"""Other names of extractors. "2.75" is the version number printed by the extractor that MLPerf pins."""

VERSIONS: dict[str, str] = {"3.1.0": "3.1.0", "mlperf": "3162bb6c3c9ebd2d15be507aa11d6fa818a454ac"}
"""Version of wikiextractor that each extractor reproduces: a release, or a commit.

NVIDIA's and Habana's scripts pin commit 6408a430. It differs from MLPerf's 3162bb6 in reading compressed
files, in an escape that is switched off, and in revision ids that no output shows. The articles are equal.
"""


def writes_escapes(program: Mapping[str, str]) -> bool:
    """Return whether an extractor writes ``&amp;`` and so on in the text of articles.

    program: name and version of the extractor, as a manifest of articles stores them.
    """
    return program["version"] == VERSIONS["3.1.0"]


_NAME_DATE = r"-(\d{4})(\d\d)(\d\d)(?=[-.])"


class _Fields(NamedTuple):
    extractor: ExtractorName
    date: datetime.date | None
    templates: bool
    max_page_bytes: int
    skip_pages: tuple[str, ...]


class ExtractSettings(_Fields):
    """Settings that determine the bytes of the articles.

    extractor: program to reproduce: wikiextractor "3.1.0", or version 2.75 as MLPerf pins it ("mlperf" or
    "2.75").
    date: day for ``{{CURRENTDAY}}`` and similar words, at midnight. None: the date in the dump's file name
    (enwiki-20200101-...), else the day of its newest revision.
    templates: whether to collect templates in a first pass and expand them. None: the program's default,
    which is True for 3.1.0 and False for 2.75.
    max_page_bytes: a page with more bytes of XML is skipped, so that a damaged dump cannot fill the memory.
    MediaWiki allows 2 MiB of text.
    skip_pages: ids of pages to leave out, both articles and templates. Stored sorted, without repeats.
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
        ids = sorted(set(skip_pages), key=lambda page_id: (len(page_id), page_id))  # numeric ids by value
        return super().__new__(cls, extractor, date, expands, max_page_bytes, tuple(ids))

    def as_json(self, day: datetime.date | None) -> dict[str, Any]:
        """Return the settings as a manifest stores them.

        day: day that ``{{CURRENTDAY}}`` and similar words expand to. None if only the dump's pages say it.
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
        """Name and version of the program, as a manifest stores them."""
        return {"name": "wikiextractor", "version": VERSIONS[self.extractor]}

    def find_day(self, dump: str) -> datetime.date | None:
        """Return the day for ``{{CURRENTDAY}}`` and similar words, from the settings or the dump's file name.

        Returns None if neither has a date. The dump's newest revision then determines the day.
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
