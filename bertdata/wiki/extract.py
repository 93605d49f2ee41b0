"""A Wikipedia dump to extracted articles: the step.

::

    DIR/AA/wiki_00 ...            the bytes of wikiextractor's own command; each appears whole, by renaming
    DIR/unfinished/plan.json      which dump and settings; there until everything is done
    DIR/unfinished/progress.json  how far the complete files reach
    DIR/unfinished/templates.*    the first pass's templates, shared by the workers

A run that finds the unfinished directory of an earlier one with the same plan keeps its complete files
and goes on behind them.
"""

import datetime
import json
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from bertdata.errors import BertDataError, DatasetError, SettingsError, StorageError
from bertdata.io import storage
from bertdata.io.block_pool import Pool
from bertdata.wiki.article_files import ArticleFiles, file_name
from bertdata.wiki.dump import PageBlock, SiteInfo, open_dump
from bertdata.wiki.pages import (
    DUPLICATE,
    FAILED,
    TOO_LARGE,
    Skipped,
    page_name,
    read_page,
    split_pages,
)
from bertdata.wiki.report import ExtractReport
from bertdata.wiki.templates import FirstPass, map_templates
from bertdata.wiki.wikiextractor import VERSION, Renderer, is_empty, load_wikiextractor

UNFINISHED = "unfinished"
_NAME_DATE = re.compile(r"-(\d{4})(\d\d)(\d\d)(?=[-.])")

Progress = Callable[[str, int, int], None]
"""Called now and then: stage (``templates`` or ``articles``), bytes of the dump read, bytes of the dump."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExtractSettings:
    """How a dump is extracted.

    date: the day that ``{{CURRENTDAY}}`` and its relatives expand to, at midnight; None: the dump's
        own, which is the date in its file name (enwiki-20200101-...), else its newest revision's day.
    templates: whether templates are collected in a first pass and expanded.
    max_page_bytes: a page with more XML than this is skipped, so that a damaged dump cannot fill the
        memory; MediaWiki itself allows 2 MiB of text.
    """

    date: datetime.date | None = None
    templates: bool = True
    max_page_bytes: int = 256 << 20

    def __post_init__(self) -> None:
        if self.max_page_bytes < 1:
            raise SettingsError(f"max_page_bytes is {self.max_page_bytes}, expected at least 1")


def extract(
    dump: str | Path,
    output_dir: str | Path,
    settings: ExtractSettings | None = None,
    *,
    workers: int = 1,
    progress: Progress | None = None,
    report_file: str | Path | None = None,
) -> ExtractReport:
    """Write the dump's articles into ``output_dir/AA/wiki_00`` and so on; what became of each page.

    The dump may be a URL; the directory is a local one, which the workers share.
    The files' bytes are those of ``python -m wikiextractor.WikiExtractor DUMP -o DIR`` run at midnight
    of the frozen date, for any number of workers. InputError for a damaged dump, with the place;
    DatasetError for a directory that holds something else. With ``report_file`` (outside the directory)
    the report is kept there, and a later call with the same plan finds it and is done.
    """
    if workers < 1:
        raise SettingsError(f"workers is {workers}, expected at least 1")
    if storage.is_remote(str(output_dir)):
        raise SettingsError(
            f"{output_dir}: is remote; articles are extracted to a local directory: give one, and copy it "
            "there afterwards"
        )
    load_wikiextractor()
    extraction = _Extraction(
        str(dump).removeprefix("file://"),
        Path(output_dir),
        settings or ExtractSettings(),
        progress,
        None if report_file is None else Path(report_file),
    )
    return extraction.run(workers)


def preview_extraction(
    dump: str | Path,
    output_dir: str | Path,
    settings: ExtractSettings,
    *,
    report_file: str | Path | None = None,
) -> list[str]:
    """What extract would do, for a person, with nothing written; errors as from extract."""
    load_wikiextractor()
    kept = None if report_file is None else Path(report_file)
    return _Extraction(str(dump).removeprefix("file://"), Path(output_dir), settings, None, kept).preview()


class _Extraction:
    """One run: first pass, second pass, last step."""

    def __init__(
        self,
        dump: str,
        output: Path,
        settings: ExtractSettings,
        progress: Progress | None,
        report_file: Path | None,
    ) -> None:
        self._dump = dump
        self._report_file = report_file
        self._output = output
        self._unfinished = output / UNFINISHED
        self._settings = settings
        self._progress = progress or (lambda stage, done, total: None)
        self._report = ExtractReport()
        self._last_id = ""

    def run(self, workers: int) -> ExtractReport:
        with open_dump(self._dump, Pool(1), max_page_bytes=self._settings.max_page_bytes):
            self._bytes = storage.size(self._dump)  # what is no dump leaves no directory behind
        with _naming_refusals(self._output):
            if self._is_done():
                shutil.rmtree(self._unfinished, ignore_errors=True)  # it may have ended just before that
                return self._report
            self._claim()
        try:
            with Pool(workers) as pool:
                self._second_pass(pool, self._first_pass(pool))
        except BertDataError:
            self._leave_nothing_useless()
            raise
        with _naming_refusals(self._output):
            if self._report_file is not None:
                _write_json(self._report_file, {"plan": self._plan(), "report": asdict(self._report)})
            shutil.rmtree(self._unfinished)
        return self._report

    def preview(self) -> list[str]:
        """Dump, settings and what is there, for a person."""
        with open_dump(self._dump, Pool(1), max_page_bytes=self._settings.max_page_bytes):
            self._bytes = storage.size(self._dump)
        with _naming_refusals(self._output):
            if self._is_done():
                name = storage.base_name(self._dump)
                return [f"{self._output}: articles of {name} are there, {self._report.files} files"]
            self._refuse_others()
        plan = ", ".join(f"{name} {value}" for name, value in self._plan().items() if value is not None)
        begun = _read_json(self._unfinished / "progress.json") is not None
        how = "an earlier run's complete files are kept" if begun else "from the beginning"
        return [f"{self._output}: articles to extract: {plan}; {how}"]

    def _is_done(self) -> bool:
        """Whether an earlier run with the same plan finished and its files are there; takes up its report."""
        kept = None if self._report_file is None else _read_json(self._report_file)
        if kept is None or kept["plan"] != self._plan():
            return False
        report = ExtractReport(**kept["report"])
        try:
            sizes = [(self._output / file_name(number)).stat().st_size for number in range(report.files)]
        except FileNotFoundError:
            return False
        if sum(sizes) != report.bytes:
            return False
        self._report = report
        return True

    def _plan(self) -> dict[str, Any]:
        """All that decides the files' bytes, but what is in the dump."""
        return {
            "dump": storage.base_name(self._dump),
            "dump_bytes": self._bytes,
            "date": self._settings.date and self._settings.date.isoformat(),
            "templates": self._settings.templates,
            "max_page_bytes": self._settings.max_page_bytes,
            "wikiextractor": VERSION,
        }

    def _claim(self) -> None:
        """Take the directory, or take up what an earlier run with the same plan left in it."""
        self._refuse_others()
        self._unfinished.mkdir(parents=True, exist_ok=True)
        _write_json(self._unfinished / "plan.json", self._plan())

    def _refuse_others(self) -> None:
        """DatasetError for a directory that holds something else; nothing is changed."""
        plan = self._plan()
        found = _read_json(self._unfinished / "plan.json")
        if (
            found is None
            and self._output.is_dir()
            and (names := sorted(os.listdir(self._output))) not in ([], [UNFINISHED])
        ):
            raise DatasetError(
                f"{self._output}: is not empty ({names[0]}); choose another directory or remove this one"
            )
        if found is not None and found != plan:
            differences = [
                f"{key} {found.get(key)!r}, now {plan[key]!r}" for key in plan if found.get(key) != plan[key]
            ]
            raise DatasetError(
                f"{self._output}: was begun with other settings: {'; '.join(differences)}; "
                "choose another directory or remove this one"
            )

    def _leave_nothing_useless(self) -> None:
        """Give up the claim where nothing is complete yet, so that other settings may have the directory."""
        if not (self._unfinished / "progress.json").exists():
            shutil.rmtree(self._unfinished, ignore_errors=True)
            with suppress(OSError):  # not empty, or not ours to delete
                self._output.rmdir()

    def _first_pass(self, pool: Pool) -> datetime.date:
        """Collect the templates, if they are wanted; the day that dates are frozen at."""
        day = self._settings.date or name_date(storage.base_name(self._dump))
        if day is not None and not self._settings.templates:
            return day
        with open_dump(self._dump, pool, max_page_bytes=self._settings.max_page_bytes) as dump:
            found = FirstPass(site=dump.site, templates_wanted=self._settings.templates)
            for block in dump.blocks():
                found.add(block)
                self._progress("templates", block.position, self._bytes)
        if self._settings.templates:
            with _naming_refusals(self._unfinished):
                found.write(self._unfinished)
        self._report.template_pages = found.template_pages
        day = day or found.newest_day()
        if day is None:
            raise SettingsError(
                f"{self._dump}: has no date in its name and no dated revision; give the date that "
                "{{CURRENTDAY}} and its relatives shall expand to (--date)"
            )
        return day

    def _second_pass(self, pool: Pool, day: datetime.date) -> None:
        """Extract and write the articles."""
        self._report.date = day.isoformat()
        done = self._resume()
        files = ArticleFiles(
            self._output,
            self._unfinished / "wiki",
            self._save_progress,
            files=self._report.files,
            size=self._report.bytes,
        )
        try:
            with open_dump(self._dump, pool, max_page_bytes=self._settings.max_page_bytes) as dump:
                work = partial(
                    extract_block,
                    Rendering(
                        site=dump.site,
                        day=day,
                        templates=str(self._unfinished) if self._settings.templates else None,
                        max_page_bytes=self._settings.max_page_bytes,
                    ),
                )
                for block, outcomes in pool.map(work, _without_first(dump.blocks(), done)):
                    for outcome in outcomes:
                        self._take(outcome, files)
                    self._progress("articles", block.position, self._bytes)
            files.close()
            self._report.files, self._report.bytes = files.files, files.bytes
        finally:
            files.abandon()
            _load_renderer.cache_clear()  # it holds files of this run's directory

    def _take(self, outcome: "Article | Skipped", files: ArticleFiles) -> None:
        """Write an article, or count a page that is none."""
        if isinstance(outcome, Skipped):
            self._report.skip(outcome)
        elif outcome.page_id == self._last_id:
            self._report.skip(Skipped(reason=DUPLICATE))
        else:
            files.write(outcome.data)
            self._last_id = outcome.page_id
            self._report.pages += 1
            self._report.written += 1
            self._report.empty += is_empty(outcome.data)

    def _save_progress(self, files: ArticleFiles) -> None:
        """Keep what the complete files hold: everything before the article that starts the next one."""
        self._report.files, self._report.bytes = files.files, files.bytes
        progress = {"last_id": self._last_id, "report": asdict(self._report)}
        with _naming_refusals(self._unfinished):
            _write_json(self._unfinished / "progress.json", progress)

    def _resume(self) -> int:
        """Take up an earlier run's progress; the number of pages that it is done with."""
        progress = _read_json(self._unfinished / "progress.json")
        if progress is not None:
            self._last_id = progress["last_id"]
            self._report = ExtractReport(**progress["report"])
        return self._report.pages


@dataclass(frozen=True, kw_only=True, slots=True)
class Rendering:
    """What a worker needs to know besides the pages; ``templates`` is the directory that holds them."""

    site: SiteInfo
    day: datetime.date
    templates: str | None
    max_page_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Article:
    """An extracted article."""

    page_id: str
    data: bytes


def extract_block(rendering: Rendering, block: PageBlock) -> "list[Article | Skipped]":
    """What becomes of each page of the block, in order.

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
    for raw in split_pages(block.data):
        page = read_page(raw, rendering.site.template_namespace)
        if len(raw.data) > rendering.max_page_bytes:
            yield Skipped(reason=TOO_LARGE, name=page_name(raw.data))
        elif isinstance(page, Skipped):
            yield page
        else:
            try:
                yield Article(page_id=page.page_id, data=renderer.render(page))
            except (
                Exception
            ) as error:  # whatever goes wrong in wikiextractor: this page is lost, and said to be
                yield Skipped(reason=FAILED, name=f"{page_name(raw.data)} ({type(error).__name__}: {error})")


@lru_cache(maxsize=1)
def _load_renderer(rendering: Rendering) -> Renderer:
    """The renderer, kept between a worker's blocks."""
    renderer = Renderer(site=rendering.site, day=rendering.day)
    if rendering.templates is not None:
        renderer.templates = map_templates(Path(rendering.templates), "templates")
        renderer.redirects = map_templates(Path(rendering.templates), "redirects")
    return renderer


def _without_first(blocks: Iterator[PageBlock], pages: int) -> Iterator[PageBlock]:
    """The blocks without their first pages, which an earlier run is done with."""
    for block in blocks:
        if pages:
            found = [b""] if block.skipped else [page.data for page in split_pages(block.data)]
            passed = min(pages, len(found))
            pages -= passed
            if passed == len(found):
                continue
            block = replace(block, data=b"".join(found[passed:]))
        yield block


def name_date(name: str) -> datetime.date | None:
    """The date in a dump's file name, as in ``enwiki-20200101-pages-articles.xml.bz2``."""
    for found in _NAME_DATE.finditer(name):
        try:
            return datetime.date(*map(int, found.groups()))
        except ValueError:
            continue
    return None


@contextmanager
def _naming_refusals(path: Path) -> Iterator[None]:
    """Turn what the file system refuses into an error that names the path."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{error.filename or path}: {error.strerror or error}") from error


def _read_json(path: Path) -> Any:
    """The file's content; None where it is missing or was cut short by a crash."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None


def _write_json(path: Path, content: Any) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    os.replace(temporary, path)
