"""Report of an extraction: the number of pages that were written, and the number of pages skipped for each
reason.
"""

from collections import Counter
from typing import Any

from bertdata.wiki.pages import FAULTS

MAX_FAULTS = 1000


class ExtractReport:
    """Counts of the pages in a dump, where ``pages == written + sum(skipped.values())``.

    pages: number of all pages.
    written: number of pages that were written as articles.
    skipped: number of skipped pages for each reason.
    empty: number of written articles that contain only their title.
    faults: a line for each page that was skipped because it is damaged or failed, at most a thousand lines.
    files: number of files that were written.
    bytes: total size of these files.
    several_revisions: number of articles that are joined from the texts of several revisions.
    by_package: number of pages that the kernel could not handle and the package wikiextractor extracted.
    date: day that replaces ``{{CURRENTDAY}}`` and similar words, as YYYY-MM-DD.
    template_pages: number of pages from which templates were collected.
    """

    date: str
    pages: int
    written: int
    empty: int
    skipped: dict[str, int]
    faults: list[str]
    template_pages: int
    files: int
    bytes: int
    by_package: int
    several_revisions: int

    def __init__(
        self,
        *,
        date: str = "",
        pages: int = 0,
        written: int = 0,
        empty: int = 0,
        skipped: dict[str, int] | None = None,
        faults: list[str] | None = None,
        template_pages: int = 0,
        files: int = 0,
        bytes: int = 0,
        by_package: int = 0,
        several_revisions: int = 0,
    ) -> None:
        self.date = date
        self.pages = pages
        self.written = written
        self.empty = empty
        self.skipped = skipped or {}
        self.faults = faults or []
        self.template_pages = template_pages
        self.files = files
        self.bytes = bytes
        self.by_package = by_package
        self.several_revisions = several_revisions

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExtractReport) and self.as_json() == other.as_json()

    def __repr__(self) -> str:
        return f"ExtractReport({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    def as_json(self) -> dict[str, Any]:
        """Return the fields of the report as a dict with copied values."""
        return {**vars(self), "skipped": dict(self.skipped), "faults": list(self.faults)}

    def copy(self) -> "ExtractReport":
        """Return a copy of the report that does not change with the original."""
        return ExtractReport(**self.as_json())

    def skip(self, reason: str, name: str = "") -> None:
        """Count a page that was skipped.

        reason: reason why it was skipped.
        name: name of the page, which is needed if the reason is damage or failure.
        """
        self.pages += 1
        self.skipped[reason] = self.skipped.get(reason, 0) + 1
        if reason in FAULTS and len(self.faults) < MAX_FAULTS:
            self.faults.append(f"page {name}: skipped: {reason}")

    def warnings(self) -> list[str]:
        """Return a list with a warning if pages of the dump have several revisions, otherwise an empty
        list.
        """
        if not self.several_revisions:
            return []
        number = self.several_revisions
        pages = "1 page holds" if number == 1 else f"{number} pages hold"
        return [
            f"{pages} several revisions, whose texts are joined to one article, as wikiextractor does; "
            "take a dump called pages-articles or pages-meta-current, which has each page's newest revision"
        ]

    def lines(self) -> list[str]:
        """Format the report for the user: a line for each fault, and then the counts, the largest first."""
        reasons = Counter(self.skipped).most_common()
        return [
            *self.faults,
            f"{self.pages} pages: {self.written} articles written ({self.empty} of them empty), "
            f"{self.pages - self.written} pages skipped",
            *(
                f"  {count} {reason}"
                for reason, count in sorted(reasons, key=lambda pair: (-pair[1], pair[0]))
            ),
            f"{self.template_pages} template pages read; dates frozen at {self.date}; "
            f"{self.bytes} bytes in {self.files} files",
            *self._format_package_line(),
        ]

    def _format_package_line(self) -> list[str]:
        """Return a line that says how many pages the package wikiextractor extracted, or no line if there are
        none.
        """
        if not self.by_package:
            return []
        pages = "1 page was" if self.by_package == 1 else f"{self.by_package} pages were"
        return [f"{pages} left to the package wikiextractor, which knows what is on them"]
