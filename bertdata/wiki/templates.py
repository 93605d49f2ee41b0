"""The first pass over a dump: its templates, and its newest revision.

The templates are kept in three files in wikiextractor's own compact form and mapped into memory by
every worker, which then share one copy of them however the workers were started.
"""

import mmap
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from bertdata.io import storage
from bertdata.wiki.dump import PageBlock, SiteInfo
from bertdata.wiki.pages import PAGE_TAG, RawPage, page_text
from bertdata.wiki.wikiextractor import load_wikiextractor

_TIMESTAMP = re.compile(rb"<timestamp>(\d{4}-\d\d-\d\d)T[\d:]+Z</timestamp>")
_BLOBS = ("records", "titles", "contents")


@dataclass(kw_only=True)
class FirstPass:
    """Contents of the pages so far: templates, redirects between them, the newest revision's day."""

    site: SiteInfo
    templates_wanted: bool
    templates: Any = field(init=False)
    redirects: Any = field(init=False)
    template_pages: int = 0
    newest: bytes = b""

    def __post_init__(self) -> None:
        module = load_wikiextractor()
        self._resolve = module.resolve_template_page
        self.templates = module.StreamingTemplateBlobBuilder()
        self.redirects = module.StreamingTemplateBlobBuilder()
        self._mark = f"<title>{self.site.template_namespace}:".encode()

    def add(self, block: PageBlock) -> None:
        """Take what the block holds."""
        self.newest = max([self.newest, *_TIMESTAMP.findall(block.data)])
        if not self.templates_wanted:
            return
        for title, text in self._template_pages(block.data):
            self.template_pages += 1
            # wikiextractor looks for a redirect in the first line, and wants the text as a list of lines.
            first, newline, rest = text.partition("\n")
            resolved = self._resolve(title, [first + newline, rest])
            if resolved is not None:
                kind, value = resolved
                (self.redirects if kind == "redirect" else self.templates).add(title, value)

    def _template_pages(self, data: bytes) -> Iterator[tuple[str, str]]:
        """Title and text of each readable template page; the second pass reports the unreadable ones."""
        for page in find_pages(data, self._mark):
            if (found := _title_and_text(page)) is not None:
                yield found

    def newest_day(self) -> date | None:
        """The day of the newest revision, None where the dump names none."""
        try:
            return date.fromisoformat(self.newest.decode())
        except ValueError:
            return None

    def write(self, directory: Path) -> None:
        """Keep templates and redirects in files for ``map_templates``."""
        for kind, builder in (("templates", self.templates), ("redirects", self.redirects)):
            for name, blob in zip(_BLOBS, builder.finish(), strict=True):
                with storage.open_output(str(_blob_path(directory, kind, name))) as file:
                    file.write(blob)


def find_pages(data: bytes, mark: bytes) -> Iterator[RawPage]:
    """The whole pages that hold the mark, in time that grows with the data, not with the marks."""
    behind = 0
    at = data.find(mark)
    while at >= 0:
        start = data.rfind(b"<page", behind, at)
        behind = at + 1
        opening = PAGE_TAG.match(data, start) if start >= 0 else None
        closing = None if opening is None else PAGE_TAG.search(data, opening.end())
        if closing is not None and closing[1] and closing.start() > at:
            behind = closing.end()
            yield RawPage(data=data[start:behind], whole=True)
        at = data.find(mark, behind)


def _title_and_text(page: RawPage) -> tuple[str, str] | None:
    try:
        content = page.data.decode()
    except UnicodeDecodeError:
        return None
    title = content[content.find("<title>") + len("<title>") :].partition("<")[0]
    text = page_text(content)
    return None if text is None else (title, text)


def map_templates(directory: Path, kind: str) -> Any:
    """A read-only mapping of the templates (or redirects) in the directory, by title."""
    blobs = [_map(_blob_path(directory, kind, name)) for name in _BLOBS]
    return load_wikiextractor().CompactedTemplates(*blobs, records_len=len(blobs[0]))


def _blob_path(directory: Path, kind: str, name: str) -> Path:
    return directory / f"{kind}-{name}.tmp"


def _map(path: Path) -> mmap.mmap | bytes:
    if not path.stat().st_size:
        return b""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
