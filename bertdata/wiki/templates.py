"""The first pass over a dump: its templates, and its newest revision.

The templates are kept in three files in wikiextractor's own compact form and mapped into memory by
every worker, which then share one copy of them however the workers were started.
"""

import mmap
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from bertdata.io import storage
from bertdata.io.commit import FOR_ONE_RUN
from bertdata.io.process_pool import ProcessPool
from bertdata.wiki.dump import PageBlock, SiteInfo
from bertdata.wiki.page_rules import PageRules
from bertdata.wiki.pages import LEFT_OUT, PAGE_TAG, Skipped, page_id, page_text
from bertdata.wiki.wikiextractor import load_wikiextractor

_TIMESTAMP = re.compile(rb"<timestamp>(\d{4}-\d\d-\d\d)T[\d:]+Z</timestamp>")
_BLOBS = ("records", "titles", "contents")


@dataclass(frozen=True, kw_only=True, slots=True)
class TemplatePage:
    """A page of a template: its kind is template or redirect, or empty where wikiextractor keeps nothing."""

    title: str
    kind: str = ""
    value: str = ""


@dataclass(kw_only=True)
class FirstPass:
    """Contents of the pages so far: templates, redirects between them, the newest revision's day.

    left_out: ids of template pages that were left out.
    """

    site: SiteInfo
    templates_wanted: bool
    templates: Any = field(init=False)
    redirects: Any = field(init=False)
    template_pages: int = 0
    left_out: set[str] = field(default_factory=set)
    newest: bytes = b""

    def __post_init__(self) -> None:
        module = load_wikiextractor()
        self.templates = module.StreamingTemplateBlobBuilder()
        self.redirects = module.StreamingTemplateBlobBuilder()
        self._mark = f"<title>{self.site.template_namespace}:".encode()

    def read(self, blocks: Iterator[PageBlock], pool: ProcessPool, rules: PageRules) -> Iterator[int]:
        """Take what each block holds; the offset in the dump that it reaches to."""
        if not self.templates_wanted:
            for block in blocks:
                self._add_days(block)
                yield block.position
            return
        for (position, _), pages in pool.in_order(
            partial(read_templates, rules), self._template_pages(blocks)
        ):
            for page in pages:
                self._add(page)
            yield position

    def _template_pages(self, blocks: Iterator[PageBlock]) -> Iterator[tuple[int, list[bytes]]]:
        """Offset and template pages of each block."""
        for block in blocks:
            self._add_days(block)
            yield block.position, list(find_pages(block.data, self._mark))

    def _add_days(self, block: PageBlock) -> None:
        self.newest = max([self.newest, *_TIMESTAMP.findall(block.data)])

    def _add(self, page: TemplatePage | Skipped) -> None:
        if isinstance(page, Skipped):
            self.left_out.add(page.name)
            return
        self.template_pages += 1
        if page.kind:
            (self.redirects if page.kind == "redirect" else self.templates).add(page.title, page.value)

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


def find_pages(data: bytes, mark: bytes) -> Iterator[bytes]:
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
            yield data[start:behind]
        at = data.find(mark, behind)


def read_templates(rules: PageRules, found: tuple[int, list[bytes]]) -> list[TemplatePage | Skipped]:
    """The readable pages of those found in a block; the second pass reports the unreadable ones."""
    load_wikiextractor()  # whose import is no page's work
    pages: list[TemplatePage | Skipped] = []
    for data in found[1]:
        number = page_id(data)
        if number in rules.skip_pages:
            pages.append(Skipped(reason=LEFT_OUT, name=number))
        elif (readable := _title_and_text(data)) is not None:
            with rules.limited(number, readable[0]):
                pages.append(_resolve(*readable))
    return pages


def _resolve(title: str, text: str) -> TemplatePage:
    # wikiextractor looks for a redirect in the first line, and wants the text as a list of lines.
    first, newline, rest = text.partition("\n")
    resolved = load_wikiextractor().resolve_template_page(title, [first + newline, rest])
    if resolved is None:
        return TemplatePage(title=title)
    kind, value = resolved
    return TemplatePage(title=title, kind=kind, value=value)


def _title_and_text(page: bytes) -> tuple[str, str] | None:
    try:
        content = page.decode()
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
    return directory / f"{kind}-{name}{FOR_ONE_RUN}"


def _map(path: Path) -> mmap.mmap | bytes:
    if not path.stat().st_size:
        return b""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
