"""A Wikipedia dump to extracted articles: the step.

::

    DIR/AA/wiki_00 ...             the bytes of wikiextractor's own command
    DIR/MD5SUMS DIR/manifest.json  written last
    DIR/unfinished/                by the commit protocol: plan, progress, a note for each complete file,
                                   and the first pass's templates, which the workers share

Articles follow one another, so a run that goes on keeps the complete files if all of them fit their
notes, and passes over the pages that are in them.
"""

import datetime
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from bertdata.errors import InputError, ManifestError, SettingsError
from bertdata.io import storage
from bertdata.io.commit import Commit
from bertdata.io.entry_json import parse_entry
from bertdata.io.file_check import FileEntry, fits
from bertdata.io.manifest_file import MANIFEST_NAME
from bertdata.io.process_pool import ProcessPool
from bertdata.io.worker_process import WorkerDied
from bertdata.wiki.article_files import ArticleFiles, file_name
from bertdata.wiki.dump import Dump, open_dump
from bertdata.wiki.manifest import (
    KIND,
    SKIPPED_PAGES,
    ArticlesManifest,
    manifest_terms,
    parse_articles_manifest,
    plan_terms,
)
from bertdata.wiki.page_rules import LIMITS, PageLimits, PageRules
from bertdata.wiki.pages import DUPLICATE, LEFT_OUT, Skipped
from bertdata.wiki.rendering import (
    Article,
    PageIsKept,
    Rendering,
    extract_block,
    forget_renderer,
    without_first,
)
from bertdata.wiki.report import ExtractReport
from bertdata.wiki.settings import ExtractSettings
from bertdata.wiki.templates import FirstPass
from bertdata.wiki.wikiextractor import VERSION, is_empty, load_wikiextractor

_PROGRESS = "progress"

OnProgress = Callable[[str, int, int], None]
"""Called now and then: stage (``templates`` or ``articles``), bytes of the dump read, bytes of the dump."""


def extract(
    dump: str | Path,
    output_dir: str | Path,
    settings: ExtractSettings | None = None,
    *,
    workers: int = 1,
    progress: OnProgress | None = None,
    limits: PageLimits = LIMITS,
) -> ExtractReport:
    """Write the dump's articles into ``output_dir/AA/wiki_00`` and so on; the report on every page.

    The dump may be a URL; the directory is a local one, which the workers share.
    The files' bytes are those of ``python -m wikiextractor.WikiExtractor DUMP -o DIR`` run at midnight
    of the frozen date, for any number of workers. A finished directory of the same plan is known by its
    manifest, and nothing is done. InputError for a damaged dump, with the place, and for a page that takes
    more than the limits; DatasetError for a directory that holds something else.
    """
    if workers < 1:
        raise SettingsError(f"workers is {workers}, expected at least 1")
    if storage.is_remote(str(output_dir)):
        raise SettingsError(
            f"{output_dir}: is remote; articles are extracted to a local directory: give one, and copy it "
            "there afterwards"
        )
    extraction = _Extraction(dump, output_dir, settings or ExtractSettings(), progress, limits)
    if (finished := extraction.finished()) is not None:
        extraction.release()
        return finished.report
    return extraction.run(workers)


def preview_extraction(dump: str | Path, output_dir: str | Path, settings: ExtractSettings) -> list[str]:
    """The plan of extract, for a person, with nothing written; errors as from extract."""
    return _Extraction(dump, output_dir, settings, None, LIMITS).preview()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Progress:
    """The end of the complete files: the last article, and the md5 of the dump that it is from.

    skip_pages: ids to leave out; left_out: those of them that were met.
    """

    last_id: str
    dump_md5: str | None
    skip_pages: list[str]
    left_out: list[str]


class _Extraction:
    """One run: first pass, second pass, manifest."""

    def __init__(
        self,
        dump: str | Path,
        output: str | Path,
        settings: ExtractSettings,
        progress: OnProgress | None,
        limits: PageLimits,
    ) -> None:
        load_wikiextractor()
        self._dump = str(dump).removeprefix("file://")
        self._settings = settings
        self._rules = PageRules(dump=self._dump, skip_pages=settings.skip_pages, limits=limits)
        self._left_out: set[str] = set()  # ids of those pages in the dump
        self._new_ids: frozenset[str] = frozenset()  # of those that an earlier run did not leave out
        self._progress = progress or (lambda stage, done, total: None)
        self._report = ExtractReport()
        self._last_id = ""
        self._md5: str | None = None
        self._reading = ProcessPool(1)
        with self._open_dump():
            self._bytes = storage.size(self._dump)  # what is no dump leaves no directory behind
        self._day = settings.day_of(storage.base_name(self._dump))
        self._settings_json = {
            "date": self._day and self._day.isoformat(),
            "templates": settings.templates,
            "max_page_bytes": settings.max_page_bytes,
            **({"skip_pages": list(settings.skip_pages)} if settings.skip_pages else {}),
        }
        self._extractor = {"name": "wikiextractor", "version": VERSION}
        name = storage.base_name(self._dump)
        terms = plan_terms(name, self._bytes, self._settings_json, self._extractor)
        self._commit = Commit(str(output), KIND, terms, manifest_terms, may_grow=(SKIPPED_PAGES,))

    def finished(self) -> ArticlesManifest | None:
        """The manifest of the directory, where it is finished and its files have their sizes."""
        self._commit.refuse_others()
        data = self._commit.manifest()
        if data is None:
            return None
        manifest = parse_articles_manifest(data, self._commit.path(MANIFEST_NAME))
        for entry in manifest.files:
            path = self._commit.path(entry.name)
            if not storage.exists(path) or storage.size(path) != entry.bytes:
                return None
        return manifest

    def release(self) -> None:
        """Remove the rest that a finished run left if it ended before it could."""
        self._commit.release_finished()

    def run(self, workers: int) -> ExtractReport:
        with self._commit.run():
            self._finish(self._both_passes(workers))
        return self._report

    def _finish(self, files: list[FileEntry]) -> None:
        """Write MD5SUMS and manifest."""
        assert self._md5 is not None
        manifest = ArticlesManifest(
            source=FileEntry(name=storage.base_name(self._dump), bytes=self._bytes, md5=self._md5),
            settings=self._settings_json,
            extractor=self._extractor,
            report=self._report,
            files=tuple(files),
        )
        self._commit.finish(manifest.dump(), manifest.md5sums())

    def _both_passes(self, workers: int) -> list[FileEntry]:
        """Extract in processes of their own, which may be ended for a page; the entries of all files.

        What one worker leaves idle, this process, decompresses the dump for it.
        """
        try:
            with ProcessPool(workers, apart=True, memory_bytes=self._rules.limits.memory_bytes) as pool:
                self._reading = pool if workers > 1 else ProcessPool(1)
                return self._second_pass(pool, self._first_pass(pool))
        except WorkerDied as death:
            raise self._rules.error(death) from None

    def preview(self) -> list[str]:
        """Dump, settings and the state of the directory, for a person."""
        directory, terms = self._commit.directory, self._commit.terms
        if (manifest := self.finished()) is not None:
            return [f"{directory}: articles of {terms['dump']} are there, {len(manifest.files)} files"]
        plan = ", ".join(f"{name} {value}" for name, value in terms.items() if value not in (None, []))
        begun = self._commit.read_note(_PROGRESS) is not None
        how = "an earlier run's complete files are kept" if begun else "from the beginning"
        return [f"{directory}: articles to extract: {plan}; {how}"]

    def _first_pass(self, pool: ProcessPool) -> datetime.date:
        """Collect the templates, if they are wanted; the day that dates are frozen at."""
        if self._day is not None and not self._settings.templates:
            return self._day
        with self._open_dump() as dump:
            found = FirstPass(site=dump.site, templates_wanted=self._settings.templates)
            for position in found.read(dump.blocks(), pool, self._rules):
                self._progress("templates", position, self._bytes)
            self._md5 = dump.md5()
        if self._settings.templates:
            found.write(Path(self._commit.unfinished))
        self._report.template_pages = found.template_pages
        self._left_out |= found.left_out
        day = self._day or found.newest_day()
        if day is None:
            raise SettingsError(
                f"{self._dump}: has no date in its name and no dated revision; give the date that "
                "{{CURRENTDAY}} and its relatives shall expand to (--date)"
            )
        return day

    def _second_pass(self, pool: ProcessPool, day: datetime.date) -> list[FileEntry]:
        """Extract and write the articles; the entries of all files."""
        template_pages, left_out = self._report.template_pages, set(self._left_out)
        try:
            files = self._write_articles(pool, day, self._resume())
        except PageIsKept:
            self._report, self._left_out = ExtractReport(template_pages=template_pages), left_out
            self._last_id, self._new_ids = "", frozenset()
            files = self._write_articles(pool, day, [])
        finally:
            forget_renderer()
        missing = [number for number in self._settings.skip_pages if number not in self._left_out]
        self._report.faults += [
            f"page id {number}: not in the dump, nothing to leave out" for number in missing
        ]
        return files

    def _write_articles(
        self, pool: ProcessPool, day: datetime.date, kept: list[FileEntry]
    ) -> list[FileEntry]:
        """Extract and write what is not in the files that are kept; PageIsKept as from without_first."""
        self._report.date = day.isoformat()
        with self._open_dump() as dump, ArticleFiles(self._commit, kept, self._note_file) as files:
            work = partial(extract_block, self._rendering(dump, day))
            blocks = without_first(dump.blocks(), self._report.pages, self._new_ids)
            for block, outcomes in pool.in_order(work, blocks):
                for outcome in outcomes:
                    self._take(outcome, files)
                self._progress("articles", block.position, self._bytes)
            self._md5 = self._md5 or dump.md5()
            files.close()
        self._report.files, self._report.bytes = len(files.files), files.total_bytes
        return files.files

    def _open_dump(self) -> AbstractContextManager[Dump]:
        return open_dump(self._dump, self._reading, max_page_bytes=self._settings.max_page_bytes)

    def _rendering(self, dump: Dump, day: datetime.date) -> Rendering:
        return Rendering(
            site=dump.site,
            day=day,
            templates=self._commit.unfinished if self._settings.templates else None,
            max_page_bytes=self._settings.max_page_bytes,
            rules=self._rules,
        )

    def _take(self, outcome: Article | Skipped, files: ArticleFiles) -> None:
        """Write an article, or count a page that is none."""
        if isinstance(outcome, Skipped):
            self._report.skip(outcome)
            if outcome.reason == LEFT_OUT:
                self._left_out.add(outcome.name)
        elif outcome.page_id == self._last_id:
            self._report.skip(Skipped(reason=DUPLICATE))
        else:
            files.write(outcome.data)
            self._last_id = outcome.page_id
            self._report.pages += 1
            self._report.written += 1
            self._report.empty += is_empty(outcome.data)

    def _note_file(self, entry: FileEntry) -> None:
        """Note a complete file, and everything before the article that starts the next one."""
        self._report.files += 1
        self._report.bytes += entry.bytes
        self._commit.note(entry.name, asdict(entry))
        progress = _Progress(
            last_id=self._last_id,
            dump_md5=self._md5,
            skip_pages=list(self._settings.skip_pages),
            left_out=sorted(self._left_out),
        )
        self._commit.note(_PROGRESS, {"report": asdict(self._report), **asdict(progress)})

    def _resume(self) -> list[FileEntry]:
        """Take up an earlier run's progress; the entries of its files, none where one does not fit."""
        try:
            note = self._commit.read_note(_PROGRESS) or {}
            report = parse_entry(ExtractReport, note.pop("report", None))
            progress = parse_entry(_Progress, {"skip_pages": [], "left_out": [], **note})  # new in a note
            if progress.dump_md5 != self._md5:
                raise InputError(
                    f"{self._dump}: was changed since the earlier run began: md5 {self._md5}, then "
                    f"{progress.dump_md5}; remove {self._commit.directory} to extract the new one"
                )
            kept = [
                parse_entry(FileEntry, self._commit.read_note(file_name(number)))
                for number in range(report.files)
            ]
        except ManifestError:  # no note, or one of another version
            return []
        new_ids = set(self._settings.skip_pages).difference(progress.skip_pages)
        if new_ids & self._left_out:
            return []  # the template may be in any of its articles
        for number, entry in enumerate(kept):
            if entry.name != file_name(number) or not fits(self._commit.directory, entry):
                return []
        self._last_id, self._report = progress.last_id, report
        self._left_out |= set(progress.left_out)
        self._new_ids = frozenset(new_ids)
        return kept
