"""Read a dump at most twice: first for its templates and its day, then for its pages."""

import datetime
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from bertdata._native import Engine
from bertdata.io import storage
from bertdata.io.directory_protocol import FOR_ONE_RUN
from bertdata.io.file_identity import identify_file
from bertdata.wiki.articles.report import ExtractReport
from bertdata.wiki.block_work import find_definitions
from bertdata.wiki.dump.dump import Dump, OpenedOnce, PageBlock, open_dump
from bertdata.wiki.dump.kept_blocks import KeptBlocks
from bertdata.wiki.dump.revisions import choose_frozen_day, find_newest_day
from bertdata.wiki.extractor import ExtractorSettings
from bertdata.wiki.page_rules import PageLimits, PageRules
from bertdata.wiki.settings import ExtractSettings
from bertdata.wiki.template_file import TemplateFileWriter
from bertdata.wiki.worker_pool import WorkerPools

_TEMPLATES = f"templates{FOR_ONE_RUN}"

OnProgress = Callable[[str, int, int], None]
"""Function called from time to time to show progress.

Its arguments are the stage (``templates`` or ``articles``), the bytes of the dump read so far, and the size
of the dump.
"""


class DumpPasses(AbstractContextManager["DumpPasses"]):
    """A dump and the two passes over it. It is opened at once to read its head.

    path: path of the dump.
    identity: identity of its file, to detect changes between the passes.
    day: day at which dates are frozen, if it is known before the dump is read.
    bytes: size of the dump.
    rules: rules for its pages.

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
        self._tell = progress or (lambda stage, done, total: None)
        self.identity = identify_file(self.path)
        self._opened = OpenedOnce(self._open)
        self.bytes = self.identity.state.bytes
        self.day = settings.day_of(storage.get_base_name(self.path))

    def _open(self) -> AbstractContextManager[Dump]:
        limit, extractor = self._settings.max_page_bytes, self._settings.extractor
        return open_dump(self.path, self.pools.reading, extractor, max_page_bytes=limit, engine=self._engine)

    def __exit__(self, *failure: object) -> None:
        self._opened.close()

    def tell(self, stage: str, position: int) -> None:
        """Report progress."""
        self._tell(stage, position, self.bytes)

    def open(self) -> AbstractContextManager[Dump]:
        """Open the dump at its first page."""
        return self._opened.open()

    def first_pass(
        self, directory: str, kept: KeptBlocks, report: ExtractReport, left_out: set[str]
    ) -> tuple[ExtractorSettings, str | None]:
        """Collect the templates, if wanted. Return the workers' settings and the dump's md5.

        If no day is known, dates are frozen at the day of the newest revision, which this pass finds. If
        neither templates nor a day are needed, the dump is not read, and the md5 is None.
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
        # This pass can be skipped if nothing has to be learned from the pages before they are rendered.
        newest = ""
        if self.day is not None and not self._settings.templates:
            return settings._replace(day=self._dated(report, newest)), None
        with self._opened.open() as dump, TemplateFileWriter() as templates:
            # Decompression is the slowest part of reading, so the blocks of a compressed dump are kept for
            # the second pass. A plain dump is simply read again.
            blocks = kept.passing(dump.blocks()) if dump.compressed else dump.blocks()
            for block in self._definitions(blocks, settings, templates, report, left_out):
                if self.day is None:
                    newest = max(newest, find_newest_day(block.data))
                self.tell("templates", block.position)
            md5 = dump.md5()
            if self._settings.templates:
                path = storage.join(directory, _TEMPLATES)
                with storage.open_output(path) as file:
                    templates.write(file)
                settings = settings._replace(templates=path)
        return settings._replace(day=self._dated(report, newest)), md5

    def _definitions(
        self,
        blocks: Iterator[PageBlock],
        settings: ExtractorSettings,
        templates: TemplateFileWriter,
        report: ExtractReport,
        left_out: set[str],
    ) -> Iterator[PageBlock]:
        """Yield the blocks, and collect their template definitions if templates are wanted."""
        if not self._settings.templates:
            yield from blocks
            return
        for block, found in find_definitions(blocks, settings, self.pools.work):
            for definition in found.definitions:
                templates.add(*definition)
            report.template_pages += found.pages
            left_out.update(found.left_out)
            yield block

    def _dated(self, report: ExtractReport, newest: str) -> datetime.date:
        """Return the day at which dates are frozen, and write it into the report."""
        day = choose_frozen_day(self.path, self.day, newest)
        report.date = day.isoformat()
        return day
