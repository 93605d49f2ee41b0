"""Reads a dump at most twice: first for its templates and its newest revision, then for its articles."""

import datetime
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from bertdata._native import Engine
from bertdata.io import storage
from bertdata.io.directory_protocol import ONE_RUN_ENDING
from bertdata.io.file_identity import identify_file
from bertdata.wiki.articles.report import ExtractReport
from bertdata.wiki.block_work import find_definitions
from bertdata.wiki.dump.dump import Dump, PageBlock, ReopenableDump, open_dump
from bertdata.wiki.dump.kept_blocks import KeptBlocks
from bertdata.wiki.dump.revisions import choose_frozen_day, find_newest_day
from bertdata.wiki.extractor import ExtractorSettings
from bertdata.wiki.page_rules import PageLimits, PageRules
from bertdata.wiki.settings import ExtractSettings
from bertdata.wiki.template_file import TemplateFileWriter
from bertdata.wiki.worker_pool import WorkerPools

_TEMPLATES = f"templates{ONE_RUN_ENDING}"

OnProgress = Callable[[str, int, int], None]
"""Function that is called from time to time to show progress.

Its arguments are the current stage (``templates`` or ``articles``), the number of bytes of the dump read so
far, and the size of the dump.
"""


class DumpPasses(AbstractContextManager["DumpPasses"]):
    """A dump that is read in two passes. The constructor opens it to read its <siteinfo>.

    path: path of the dump.
    identity: size and time of the dump's file, to detect changes between the passes.
    day: day that replaces ``{{CURRENTDAY}}`` and similar words. None if it must be found in the pages of the
        dump.
    bytes: size of the dump in bytes.
    rules: which pages are left out, and the limits for all others.
    pools: workers that decompress the dump and extract pages.

    Raises InputError if the file is not a dump.
    """

    def __init__(
        self,
        path: str,
        settings: ExtractSettings,
        engine: Engine,
        pools: WorkerPools,
        limits: PageLimits,
        progress: OnProgress | None,
    ) -> None:
        self.path = path.removeprefix("file://")
        self.pools = pools
        self.rules = PageRules(dump=self.path, skip_pages=settings.skip_pages, limits=limits)
        self._settings = settings
        self._engine: Engine = engine
        self._progress = progress or (lambda stage, done, total: None)
        self.identity = identify_file(self.path)
        self._opened = ReopenableDump(self._open)
        self.bytes = self.identity.state.bytes
        self.day = settings.find_day(storage.get_base_name(self.path))

    def _open(self) -> AbstractContextManager[Dump]:
        """Open the dump at its start."""
        limit, extractor = self._settings.max_page_bytes, self._settings.extractor
        return open_dump(self.path, self.pools.reading, extractor, max_page_bytes=limit, engine=self._engine)

    def __exit__(self, *failure: object) -> None:
        self._opened.close()

    def report_progress(self, stage: str, position: int) -> None:
        """Call the caller's progress function.

        stage: "templates" or "articles".
        position: number of bytes of the dump read so far.
        """
        self._progress(stage, position, self.bytes)

    def open(self) -> AbstractContextManager[Dump]:
        """Open the dump at its first page."""
        return self._opened.open()

    def run_first_pass(
        self, directory: str, kept: KeptBlocks, report: ExtractReport, left_out: set[str]
    ) -> tuple[ExtractorSettings, str | None]:
        """Read the whole dump for its template definitions and its newest revision, if they are needed.

        The newest revision is needed if neither the settings nor the dump's file name contain a date. Its day
        then replaces ``{{CURRENTDAY}}`` and similar words. If neither templates nor this day are needed, the
        dump is not read.

        directory: local directory for the template file.
        kept: store for the blocks of a compressed dump, so that the second pass need not decompress it again.
        report: report in which the template pages are counted.
        left_out: set of page ids. The ids of template pages that the user asked to leave out are added.

        Returns the settings for the workers, and the md5 of the dump. The md5 is None if the dump was not
        read.
        """
        settings = ExtractorSettings(
            extractor=self._settings.extractor,
            engine=self._engine,
            site=self._opened.site,
            day=self.day,
            templates=None,
            max_page_bytes=self._settings.max_page_bytes,
            rules=self.rules,
        )
        # Skip this pass if the articles need neither templates nor the day of the newest revision.
        newest = ""
        if self.day is not None and not self._settings.templates:
            return settings._replace(day=self._freeze_day(report, newest)), None
        with self._opened.open() as dump, TemplateFileWriter() as templates:
            # Decompression takes most of the time for reading, so the blocks of a compressed dump are kept
            # for the second pass. A plain dump is simply read again.
            blocks = kept.keep_all(dump.read_blocks()) if dump.compressed else dump.read_blocks()
            for block in self._collect_definitions(blocks, settings, templates, report, left_out):
                if self.day is None:
                    newest = max(newest, find_newest_day(block.data))
                self.report_progress("templates", block.position)
            md5 = dump.md5()
            if self._settings.templates:
                path = storage.join(directory, _TEMPLATES)
                with storage.open_output(path, flushes=False) as file:
                    templates.write(file)
                settings = settings._replace(templates=path)
        return settings._replace(day=self._freeze_day(report, newest)), md5

    def _collect_definitions(
        self,
        blocks: Iterator[PageBlock],
        settings: ExtractorSettings,
        templates: TemplateFileWriter,
        report: ExtractReport,
        left_out: set[str],
    ) -> Iterator[PageBlock]:
        """Yield the blocks unchanged, and add their template definitions to ``templates``.

        Nothing is added if the settings say that templates are not expanded.
        """
        if not self._settings.templates:
            yield from blocks
            return
        for block, found in find_definitions(blocks, settings, self.pools.work):
            for definition in found.definitions:
                templates.add(*definition)
            report.template_pages += found.pages
            left_out.update(found.left_out)
            yield block

    def _freeze_day(self, report: ExtractReport, newest: str) -> datetime.date:
        """Choose the day that replaces ``{{CURRENTDAY}}`` and similar words, and write it into the report.

        newest: day of the newest revision as YYYY-MM-DD, or empty if it is not known.
        """
        day = choose_frozen_day(self.path, self.day, newest)
        report.date = day.isoformat()
        return day
