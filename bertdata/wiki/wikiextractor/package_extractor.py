"""Extractor that calls the package wikiextractor 3.1.0. It is the Python engine of the extractor "3.1.0".

For some small pages, the package may take hours or all memory. Pages are therefore processed in a separate
process with limits (see ``page_rules``). The templates are stored in a compact format of the package, in
three files next to the template file. All workers map these files into memory.
"""

import datetime
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from bertdata.errors import InputError
from bertdata.io import storage
from bertdata.io.directory_protocol import ONE_RUN_ENDING
from bertdata.wiki.extractor import (
    BlockArticles,
    BlockDefinitions,
    BlockState,
    ExtractorSettings,
    PageOutcome,
)
from bertdata.wiki.pages import DUPLICATE, FAILED, LEFT_OUT_PAGE, TOO_LARGE, Skipped, read_page_id
from bertdata.wiki.template_file import REDIRECT, TEMPLATE, map_file, read_definitions
from bertdata.wiki.wikiextractor.arithmetic import pop_refusal
from bertdata.wiki.wikiextractor.pages import PAGE_TAG, Page, RawPage, read_page, read_page_text, split_pages
from bertdata.wiki.wikiextractor.renderer import Renderer, forget_parsed_templates, load_wikiextractor

_SURROGATE = re.compile("[\ud800-\udfff]")
"""Halves of surrogate pairs, which a character reference can produce."""

_BLOBS = ("records", "titles", "contents")

Result = TypeVar("Result")


class PackageExtractor:
    """Extractor that calls the package in a new thread for each block.

    Whether a deeply nested page fails must depend only on its block. Python's recursion limit is counted from
    the start of the thread, so a new thread gives every block the same depth. The package also caches parsed
    templates, and rendering needs less depth for a template in the cache. The cache is therefore emptied
    before each block. The C++ kernel passes the pages that it cannot handle as blocks of a single page.
    """

    def __init__(self, settings: ExtractorSettings) -> None:
        # Import the package here, so that the time for it is not counted for the first page.
        load_wikiextractor()
        self._settings = settings
        self._namespace = settings.site.template_namespace
        self._renderer = Renderer(site=settings.site, day=settings.day or datetime.date(1, 1, 1))
        if settings.templates is not None:
            write_package_files(settings.templates)
            self._renderer.templates = _map_templates(settings.templates, TEMPLATE)
            self._renderer.redirects = _map_templates(settings.templates, REDIRECT)

    def extract(self, data: bytes, state: BlockState, /) -> BlockArticles:
        """Extract the articles of a block of pages, in a new thread."""
        forget_parsed_templates()
        return _run_in_new_thread(lambda: self._extract_block(data, state))

    def _extract_block(self, data: bytes, state: BlockState) -> BlockArticles:
        """Extract the articles of a block of pages."""
        articles: list[bytes] = []
        outcomes = []
        first_id, last_id = None, state.last_id
        for raw in split_pages(data):
            article = b""
            page = self._read_page(raw)
            if isinstance(page, Skipped):
                reason, detail = page.reason, page.name if page.reason == LEFT_OUT_PAGE else ""
            else:
                first_id = first_id or page.page_id
                reason, detail, article = self._render_page(page, last_id)
                last_id = page.page_id
                articles.append(article)
            outcomes.append(PageOutcome(reason, detail, len(article), raw.begin, raw.begin + len(raw.data)))
        return BlockArticles(b"".join(articles), outcomes, first_id, state._replace(last_id=last_id))

    def _read_page(self, raw: RawPage) -> Page | Skipped:
        """Return the fields of a page, or the reason why it is skipped."""
        skip_pages = self._settings.rules.skip_pages
        if skip_pages and (number := read_page_id(raw.data)) in skip_pages:
            return Skipped(reason=LEFT_OUT_PAGE, name=number)
        if len(raw.data) > self._settings.max_page_bytes:
            return Skipped(reason=TOO_LARGE)
        return read_page(raw, self._namespace)

    def _render_page(self, page: Page, last_id: str | None) -> tuple[str, str, bytes]:
        """Render the article of a page.

        last_id: page id of the article before, or None.

        Returns the reason why the page is skipped, details, and the article. The reason is empty if there is
        an article, and the article is empty if the page is skipped.
        """
        if page.page_id == last_id:
            return DUPLICATE, "", b""
        rules = self._settings.rules
        try:
            with rules.limit_page(page.page_id, page.title):
                result = "", page.page_id, self._renderer.render(page)
        except InputError:  # The page exceeds a limit. This ends the run.
            raise
        except Exception as error:  # The package failed on this page. Only this page is skipped.
            result = FAILED, f"{type(error).__name__}: {error}", b""
        if refused := pop_refusal():
            raise rules.make_limit_error(page.page_id, page.title, refused)
        return result

    def definitions(self, data: bytes, state: BlockState, /) -> BlockDefinitions:
        """Collect the template definitions in a block of pages, in a new thread."""
        return _run_in_new_thread(lambda: self._find_definitions(data, state))

    def _find_definitions(self, data: bytes, state: BlockState) -> BlockDefinitions:
        """Collect the template definitions in a block of pages."""
        rules = self._settings.rules
        found, left_out, pages = [], [], 0
        for page in find_pages(data, f"<title>{self._namespace}:".encode()):
            number = read_page_id(page)
            if number in rules.skip_pages:
                left_out.append(number)
            elif (readable := _read_title_and_text(page)) is not None:
                pages += 1
                with rules.limit_page(number, readable[0]):
                    found += _resolve_template(*readable)
        return BlockDefinitions(found, pages, left_out, None, state)


def _run_in_new_thread(function: Callable[[], Result]) -> Result:
    """Call a function in a new thread, and return its result or raise its error."""
    results: list[Result] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return results[0]


def find_pages(data: bytes, mark: bytes) -> Iterator[bytes]:
    """Yield each whole page that contains certain bytes.

    data: XML of a block of pages.
    mark: the bytes to search for. The search takes linear time even if they occur very often.
    """
    # Few pages are templates. It is therefore faster to search for the mark first, and then for the page
    # around it. ``behind`` is the end of the text that has been searched. Going back beyond it again and
    # again would take quadratic time.
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


def _read_title_and_text(page: bytes) -> tuple[str, str] | None:
    """Return the title and the text of a page.

    Returns None if the page is unreadable. The second pass reports such a page.
    """
    try:
        content = page.decode()
    except UnicodeDecodeError:
        return None
    title = content[content.find("<title>") + len("<title>") :].partition("<")[0]
    text = read_page_text(content)
    return None if text is None else (title, text)


def _resolve_template(title: str, text: str) -> list[tuple[str, bytes, bytes]]:
    """Return the definition on a template's page as a list of a single item: its kind, title and text.

    The list is empty if the page defines nothing.
    """
    # wikiextractor expects a list of lines, and searches only the first line for a redirect.
    first, newline, rest = text.partition("\n")
    resolved = load_wikiextractor().resolve_template_page(title, [first + newline, rest])
    if resolved is None:
        return []
    kind, value = resolved
    # Half a surrogate pair cannot be encoded in UTF-8. The C++ kernel replaces it in the same way.
    text = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)
    return [(REDIRECT if kind == "redirect" else TEMPLATE, title.encode(), text.encode())]


def write_package_files(template_file: str) -> None:
    """Write the templates in the package's format, into files next to the template file, unless they exist.

    template_file: path of the template file.
    """
    if all(_make_blob_path(template_file, REDIRECT, name).exists() for name in _BLOBS):
        return
    builders = {kind: load_wikiextractor().StreamingTemplateBlobBuilder() for kind in (TEMPLATE, REDIRECT)}
    for kind, title, text in read_definitions(memoryview(map_file(template_file))):
        builders[kind].add(title.decode(), text.decode())
    for kind, builder in builders.items():
        for name, blob in zip(_BLOBS, builder.finish(), strict=True):
            path = str(_make_blob_path(template_file, kind, name))
            with storage.open_output(path, flushes=False) as file:
                file.write(blob)


def _map_templates(template_file: str, kind: str) -> Any:
    """Return a read-only mapping from the title of a template to its text. The texts are mapped into memory.

    kind: TEMPLATE for the texts of templates, or REDIRECT for the targets of redirects.
    """
    blobs = [map_file(str(_make_blob_path(template_file, kind, name))) for name in _BLOBS]
    return load_wikiextractor().CompactedTemplates(*blobs, records_len=len(blobs[0]))


def _make_blob_path(template_file: str, kind: str, name: str) -> Path:
    """Return the path of a file with templates in the package's format."""
    return Path(f"{template_file.removesuffix(ONE_RUN_ENDING)}-{kind}-{name}{ONE_RUN_ENDING}")
