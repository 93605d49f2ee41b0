"""Extraction of whole dumps in one process: head, then definitions, then pages in blocks."""

import io
import re
from collections.abc import Iterator
from typing import Any

from bertdata.wiki.dump.site import parse_head
from bertdata.wiki.template_file import TemplateFileWriter

START = ("0", False, False, None)
_BLOCK_END = re.compile(rb"^[^<\n]*</page>.*\n?", re.MULTILINE)

LIMITS = {"max_page_bytes": 1 << 24, "max_work": 1 << 30}


def split_head(dump: bytes, extractor: str = "mlperf") -> tuple[dict[str, Any], bytes]:
    """Return what an extractor's constructor needs from the dump's head, and the bytes after the head."""
    head, _, rest = dump.partition(b"</siteinfo>\n")
    site = parse_head(head + b"</siteinfo>\n", "dump", extractor)
    return {**site._asdict(), "namespaces": list(site.namespaces)}, rest


def blocks(pages: bytes, size: int) -> Iterator[bytes]:
    """Yield blocks of at least ``size`` bytes.

    Each block except the last ends with a line that begins with ``</page>``.
    """
    begin = 0
    for end in _BLOCK_END.finditer(pages):
        if end.end() - begin >= size:
            yield pages[begin : end.end()]
            begin = end.end()
    if begin < len(pages):
        yield pages[begin:]


def template_file(definitions: list[tuple[str, bytes, bytes]]) -> bytes:
    """Return the definitions as a template file, in the format that extractors read."""
    file = io.BytesIO()
    with TemplateFileWriter() as writer:
        for definition in definitions:
            writer.add(*definition)
        writer.write(file)
    return file.getvalue()


class Extraction:
    """A dump's articles, the outcome of each page, and the template definitions, from one extractor."""

    def __init__(
        self,
        kind: Any,
        dump: bytes,
        *,
        templates: bool,
        extractor: str = "mlperf",
        block: int = 1 << 18,
        **settings: Any,
    ) -> None:
        site, pages = split_head(dump, extractor)
        settings = {**site, **LIMITS, "day": "2020-01-01", "skip_pages": [], **settings}
        self.definitions: list[tuple[str, bytes, bytes]] = []
        self.template_pages = 0
        file = None
        if templates:
            first = kind(templates=None, **settings)
            state: Any = START
            for data in blocks(pages, block):
                found, number, _, _, state = first.definitions(data, state)
                self.definitions += found
                self.template_pages += number
            file = template_file(self.definitions)
        extracting = kind(templates=file, **settings)
        self.articles = b""
        self.outcomes: list[tuple[str, str, int, int, int]] = []
        self.states = [START]
        self.first_ids: list[str | None] = []
        for data in blocks(pages, block):
            articles, outcomes, first_id, state = extracting.extract(data, self.states[-1])
            self.articles += articles
            self.outcomes += outcomes
            self.first_ids.append(first_id)
            self.states.append(state)
