"""Extracts the articles of a Wikipedia dump into a directory.

These files are written::

    DIR/AA/wiki_00 ... the articles, with the same bytes that wikiextractor writes DIR/MD5SUMS md5 of each
    file, written at the end DIR/manifest.json written at the end DIR/unfinished/ during the run: the
    settings, the templates of the first pass, and for each complete file a note with the position in the dump
    at its end

Articles are written in the order of the dump. A later run keeps the complete files of an interrupted run if
all of them match their notes, and passes over the pages that they contain.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from bertdata._native import Engine
from bertdata.errors import DataError, SettingsError
from bertdata.io import storage
from bertdata.io.outputs import refuse_input_as_output
from bertdata.io.worker_process import WorkerDied
from bertdata.wiki.articles.directory import ArticlesDirectory
from bertdata.wiki.articles.manifest import ArticlesManifest
from bertdata.wiki.articles.report import ExtractReport
from bertdata.wiki.articles.writer import ArticleWriter, PageIsKept
from bertdata.wiki.dump.dump import PageBlock
from bertdata.wiki.dump.kept_blocks import KeptBlocks
from bertdata.wiki.dump.passes import DumpPasses, OnProgress
from bertdata.wiki.open_extractor import check_engine, forget_extractors
from bertdata.wiki.page_rules import LIMITS, PageLimits
from bertdata.wiki.settings import ExtractSettings
from bertdata.wiki.worker_pool import open_pools

AnyPath = str | os.PathLike[str]


def extract_dump(
    dump: AnyPath,
    output_dir: AnyPath,
    settings: ExtractSettings | None = None,
    *,
    engine: Engine | None = None,
    workers: int = 1,
    progress: OnProgress | None = None,
    limits: PageLimits = LIMITS,
) -> ExtractReport:
    """Write the articles of a dump into ``output_dir/AA/wiki_00`` and so on, and return a report on all
    pages.

    The files are the same as those that the original program (``WikiExtractor.py DUMP -o DIR``) writes if it
    runs at midnight of the day in the settings. They do not depend on the engine and the number of workers.
    If the directory is already finished with the same dump and settings, nothing is done.

    dump: path or URL of the dump.
    output_dir: path or URL of the directory.
    settings: settings of the extraction. None means the defaults.
    engine: "native" for the C++ kernels, "python" for Python, None for the kernels if they are built.
    workers: number of threads (for the kernels) or processes (for Python).
    progress: function that is called from time to time with the current stage, the number of bytes read so
        far, and the size of the dump.
    limits: limits of time and memory for a single page.

    Raises InputError with the position for a damaged dump, and for a page that exceeds the limits. Raises
    DatasetError for a directory with files that an extraction does not write.
    """
    if workers < 1:
        raise SettingsError(f"workers is {workers}, expected at least 1")
    refuse_input_as_output(str(output_dir), [str(dump)])
    settings = settings or ExtractSettings()
    engine = check_engine(settings.extractor, engine)
    with (
        open_pools(engine, workers, limits.memory_bytes) as pools,
        DumpPasses(str(dump), settings, engine, pools, limits, progress) as passes,
    ):
        extraction = _Extraction(passes, str(output_dir), settings)
        if (finished := extraction.finished()) is not None:
            extraction.keep(finished)
            return finished.report
        return extraction.run()


def preview_extraction(
    dump: AnyPath, output_dir: AnyPath, settings: ExtractSettings, engine: Engine | None = None
) -> list[str]:
    """Return lines that tell the user what ``extract_dump`` would do. Nothing is written.

    Raises InputError for a file that is not a dump. Raises DatasetError for a directory with files that an
    extraction does not write.
    """
    refuse_input_as_output(str(output_dir), [str(dump)])
    engine = check_engine(settings.extractor, engine)
    with (
        open_pools(engine, 1, LIMITS.memory_bytes) as pools,
        DumpPasses(str(dump), settings, engine, pools, LIMITS, None) as passes,
    ):
        return _Extraction(passes, str(output_dir), settings).preview()


class _Extraction:
    """A run of the extraction, which collects templates, extracts articles and writes the manifest."""

    def __init__(self, passes: DumpPasses, output: str, settings: ExtractSettings) -> None:
        self._passes = passes
        self._directory = ArticlesDirectory(output, passes.path, passes.bytes, settings)
        self._commit = self._directory.commit

    def finished(self) -> ArticlesManifest | None:
        """Return the manifest if the directory is finished and its files have the sizes in the manifest.

        Returns None otherwise.
        """
        return self._directory.finished()

    def keep(self, finished: ArticlesManifest) -> None:
        """Keep a finished directory.

        Remove the unfinished files, which are still there if a run was interrupted after it wrote the
        manifest, and write MD5SUMS again if it is lost.
        """
        self._directory.keep_finished(finished)

    def preview(self) -> list[str]:
        """Return lines that tell the user about the dump, the settings and the state of the directory."""
        return self._directory.preview(begun=ArticleWriter.has_begun(self._commit))

    def run(self) -> ExtractReport:
        """Extract and write the articles, and return the report on all pages."""
        with self._commit.run(), self._open_local_directory() as directory:
            try:
                with KeptBlocks(directory, self._passes.bytes) as kept:
                    writer = self._run_passes(directory, kept)
            except WorkerDied as death:
                raise self._passes.rules.make_error(death) from None
            except DataError:
                # If the dump was changed during the run, an error about damage is misleading, so check this
                # first.
                self._passes.identity.check()
                raise
            finally:
                forget_extractors()
            assert writer.dump_md5 is not None
            self._passes.identity._replace(md5=writer.dump_md5).check()
            self._directory.finish(writer.report, writer.files, writer.dump_md5, writer.left_out)
        return writer.report

    @contextmanager
    def _open_local_directory(self) -> Iterator[str]:
        """Yield a local directory for the files that all workers read."""
        if not storage.is_remote(self._commit.unfinished):
            yield self._commit.unfinished
            return
        from tempfile import TemporaryDirectory  # This is slow to import and rarely needed.

        with TemporaryDirectory() as directory:
            yield directory

    def _run_passes(self, directory: str, kept: KeptBlocks) -> ArticleWriter:
        """Run both passes over the dump, and return the writer of the articles."""
        report, left_out = ExtractReport(), set[str]()
        settings, md5 = self._passes.run_first_pass(directory, kept, report, left_out)
        # First try to continue an earlier run. If its files contain a page that this run must leave out,
        # write all files again. The report then starts again with the counts of the first pass.
        writer = ArticleWriter(
            self._commit, self._passes.identity, settings, report.copy(), set(left_out), md5
        )
        try:
            writer.resume()
            self._run_second_pass(kept, writer)
        except PageIsKept:
            writer = ArticleWriter(self._commit, self._passes.identity, settings, report, left_out, md5)
            self._run_second_pass(kept, writer)
        return writer

    def _run_second_pass(self, kept: KeptBlocks, writer: ArticleWriter) -> None:
        """Extract and write the articles.

        The blocks come from the first pass if it has kept them, otherwise from the dump.
        """
        # If the first pass has kept all blocks, it has computed the md5 too. Otherwise the dump is read here.
        if kept.complete:
            self._write(kept.read_and_free(), writer)
            return
        with self._passes.open() as dump:
            self._write(dump.read_blocks(), writer)
            writer.dump_md5 = writer.dump_md5 or dump.md5()

    def _write(self, blocks: Iterable[PageBlock], writer: ArticleWriter) -> None:
        """Write the articles of all blocks, and report the progress."""
        for position in writer.write(blocks, self._passes.pools.work):
            self._passes.report_progress("articles", position)
