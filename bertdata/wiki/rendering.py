"""Blocks of pages to articles: the work of one worker."""

import datetime
import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from bertdata.errors import InputError
from bertdata.wiki.dump import PageBlock, SiteInfo
from bertdata.wiki.page_rules import PageRules
from bertdata.wiki.pages import (
    FAILED,
    LEFT_OUT,
    TOO_LARGE,
    Skipped,
    page_id,
    page_name,
    read_page,
    split_pages,
)
from bertdata.wiki.templates import map_templates
from bertdata.wiki.wikiextractor import Renderer, load_wikiextractor


@dataclass(frozen=True, kw_only=True, slots=True)
class Rendering:
    """Everything that a worker needs besides the pages; ``templates`` is the directory that holds them."""

    site: SiteInfo
    day: datetime.date
    templates: str | None
    max_page_bytes: int
    rules: PageRules


@dataclass(frozen=True, kw_only=True, slots=True)
class Article:
    """An extracted article."""

    page_id: str
    data: bytes


def extract_block(rendering: Rendering, block: PageBlock) -> "list[Article | Skipped]":
    """Article, or reason to skip it, of each page of the block, in order.

    The work is done in a thread of its own, whose stack is empty: Python counts its recursion limit
    from there, so whether a deeply nested page is too deep depends on the page alone.
    """
    outcomes: list[Article | Skipped] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcomes.extend(_extract_pages(rendering, block))
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcomes


def _extract_pages(rendering: Rendering, block: PageBlock) -> "Iterator[Article | Skipped]":
    if block.skipped is not None:
        yield block.skipped
        return
    renderer = _load_renderer(rendering)
    rules = rendering.rules
    for raw in split_pages(block.data):
        if rules.skip_pages and (number := page_id(raw.data)) in rules.skip_pages:
            yield Skipped(reason=LEFT_OUT, name=number)
            continue
        page = read_page(raw, rendering.site.template_namespace)
        if len(raw.data) > rendering.max_page_bytes:
            yield Skipped(reason=TOO_LARGE, name=page_name(raw.data))
        elif isinstance(page, Skipped):
            yield page
        else:
            try:
                with rules.limited(page.page_id, page.title):
                    data = renderer.render(page)
                yield Article(page_id=page.page_id, data=data)
            except InputError:  # beyond a limit
                raise
            except Exception as error:  # whatever goes wrong in wikiextractor: this page is lost, and named
                yield Skipped(reason=FAILED, name=f"{page_name(raw.data)} ({type(error).__name__}: {error})")


@lru_cache(maxsize=1)
def _load_renderer(rendering: Rendering) -> Renderer:
    """The renderer, kept between a worker's blocks."""
    load_wikiextractor()  # whose import is no page's work
    renderer = Renderer(site=rendering.site, day=rendering.day)
    if rendering.templates is not None:
        renderer.templates = map_templates(Path(rendering.templates), "templates")
        renderer.redirects = map_templates(Path(rendering.templates), "redirects")
    return renderer


def forget_renderer() -> None:
    """Close the files of templates that this process's renderer holds."""
    _load_renderer.cache_clear()


class PageIsKept(Exception):
    """A page that is to be left out lies among those that an earlier run is done with."""


def without_first(
    blocks: Iterator[PageBlock], pages: int, left_out: Collection[str] = ()
) -> Iterator[PageBlock]:
    """The blocks without their first pages, which an earlier run is done with.

    PageIsKept if one of these has an id that is left out by this run and was not by the earlier one.
    """
    for block in blocks:
        if pages:
            found = [b""] if block.skipped else [page.data for page in split_pages(block.data)]
            passed = min(pages, len(found))
            if left_out and any(page_id(data) in left_out for data in found[:passed]):
                raise PageIsKept
            pages -= passed
            if passed == len(found):
                continue
            block = replace(block, data=b"".join(found[passed:]))
        yield block
