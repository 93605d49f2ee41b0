"""Stages from a dump to extracted articles: collect template definitions, extract articles, write files.

All workers share the work. An element is the number of a byte range of the dump, or of an output file. The
articles of a range are stored in a file in the articles' directory or bucket, so that only small values pass
through the runner.

Two steps need the results of all ranges, and run on one worker. All templates are written to one file, which
the workers map into memory. The sizes of all articles decide which file each article goes to.
"""

import logging
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import apache_beam as beam

from beam_pipelines.report.counters import add_to_counters, count_extraction
from beam_pipelines.report.errors import add_path_to_errors
from beam_pipelines.stages.extraction_stage import Definitions, ExtractionStage
from beam_pipelines.stages.shards import ONE_AT_A_TIME
from beam_pipelines.transport.spill_files import FileRange, read_value
from bertdata._native import use_native
from bertdata.io import storage
from bertdata.io.file_check import FileEntry, HashingSink
from bertdata.wiki.articles.files import make_file_name
from bertdata.wiki.articles.report import ExtractReport
from bertdata.wiki.dump.revisions import choose_frozen_day
from bertdata.wiki.extractor import START, BlockState, ExtractorSettings
from bertdata.wiki.ranges.fold import (
    ArticlePiece,
    check_digests,
    check_sequence,
    distribute_articles,
    join_reports,
)
from bertdata.wiki.ranges.shared_templates import write_templates
from bertdata.wiki.ranges.work import RangeArticles, RangeDefinitions, collect_definitions, extract_range

_LOGGER = logging.getLogger(__name__)

OutputFile = tuple[int, list[ArticlePiece]]
"""Number of an output file, and the places of its articles."""

PageReport = tuple[ExtractReport, tuple[str, ...]]
"""The report on all pages, and the ids of the pages that were left out."""

Entry = FileEntry | PageReport | str
"""An entry of the articles' manifest: a file, the report, or the dump's md5."""


class ExtractArticles(beam.PTransform):  # type: ignore[misc]
    """Write the articles of a dump and their manifest. Returns the directory.

    ::

        range 3 of the dump -> (0, RangeArticles(...)) -> (17, [pieces of AA/wiki_17])
    """

    def __init__(self, stage: ExtractionStage) -> None:
        super().__init__()
        self._stage = stage

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection[str]:
        stage = self._stage
        ranges = (
            begin
            | "list ranges" >> beam.Create(range(len(stage.ranges)), reshuffle=False)
            | "spread ranges over workers" >> beam.Reshuffle()
        )
        if stage.known is None:
            definitions = ranges | "first pass" >> CollectDefinitions(stage)
        else:
            definitions = begin | "known definitions" >> beam.Create([stage.known], reshuffle=False)
        # The templates are a side input, so extraction of any range starts when the templates of all ranges
        # are collected.
        once = beam.pvalue.AsSingleton(definitions)
        files = (
            ranges
            | "extract range" >> beam.ParDo(ExtractRange(stage), once)
            | "gather sizes" >> beam.GroupByKey()
            | "deal out articles"
            >> beam.ParDo(AssignToFiles(stage), once).with_outputs("report", main="files")
        )
        written = (
            files.files
            | "spread files over workers" >> beam.Reshuffle()
            | "write articles" >> beam.ParDo(WriteArticles(stage))
        )
        digest = (
            begin
            | "list dump" >> beam.Create([stage.ranges.path], reshuffle=False)
            | "hash dump" >> beam.ParDo(HashDump(stage))
        )
        return (
            (written, files.report, digest)
            | "all entries" >> beam.Flatten()
            | "gather entries" >> beam.GroupByKey()
            | "write manifest of the articles" >> beam.ParDo(FinishArticles(stage))
        )


class CollectDefinitions(beam.PTransform):  # type: ignore[misc]
    """Collect the template definitions of all ranges. Returns a single Definitions."""

    def __init__(self, stage: ExtractionStage) -> None:
        super().__init__()
        self._stage = stage

    def expand(self, ranges: beam.PCollection[int]) -> beam.PCollection[Definitions]:
        return (
            ranges
            | "collect definitions" >> beam.ParDo(CollectRange(self._stage))
            | "gather definitions" >> beam.GroupByKey()
            | "write template file" >> beam.ParDo(JoinDefinitions(self._stage))
        )


class CollectRange(beam.DoFn):  # type: ignore[misc]
    """Collect the template definitions in a range of the dump, and the day of its newest revision."""

    def __init__(self, stage: ExtractionStage) -> None:
        self._stage = stage

    def process(self, number: int) -> Iterator[tuple[int, RangeDefinitions]]:
        yield 0, self.collect(number, START)

    def collect(self, number: int, state: BlockState) -> RangeDefinitions:
        """Return the template definitions of a range. state: parser state at the range's beginning."""
        stage = self._stage
        settings = stage.make_settings()
        path = stage.make_path() if stage.articles.settings.templates else None
        days = stage.articles.day is None
        with add_path_to_errors(stage.ranges.path), _lock_python_engine(settings):
            return collect_definitions(stage.ranges, number, settings, path, days=days, state=state)


class JoinDefinitions(beam.DoFn):  # type: ignore[misc]
    """Write the templates of all ranges to one file, and choose the day that date templates expand to."""

    def __init__(self, stage: ExtractionStage) -> None:
        self._stage = stage

    def process(self, gathered: tuple[int, Iterable[RangeDefinitions]]) -> Iterator[Definitions]:
        stage = self._stage
        dump = stage.ranges.path
        found = list(check_sequence(dump, gathered[1], CollectRange(stage).collect))
        paths = [one.path for one in found if one.path is not None]
        with add_path_to_errors(dump):
            yield Definitions(
                day=choose_frozen_day(dump, stage.articles.day, max(one.newest for one in found)),
                templates=write_templates(paths, stage.find_templates_path) if paths else None,
                pages=sum(one.pages for one in found),
                left_out=tuple(number for one in found for number in one.left_out),
                digests=tuple(one.facts.digest for one in found),
            )


class ExtractRange(beam.DoFn):  # type: ignore[misc]
    """Extract the articles of a range into a new file.

    The file's name is random, so if the task runs twice, the second attempt writes another file, and a reader
    of the first file is not disturbed.
    """

    def __init__(self, stage: ExtractionStage) -> None:
        self._stage = stage

    def process(self, number: int, definitions: Definitions) -> Iterator[tuple[int, RangeArticles]]:
        yield 0, self.extract(definitions, number, START)

    def extract(self, definitions: Definitions, number: int, state: BlockState) -> RangeArticles:
        """Return the articles of a range. state: parser state at the range's beginning."""
        stage = self._stage
        with add_path_to_errors(stage.ranges.path):
            settings = stage.make_settings(definitions)
            with _lock_python_engine(settings):
                return extract_range(stage.ranges, number, settings, stage.make_path(), state=state)


class AssignToFiles(beam.DoFn):  # type: ignore[misc]
    """Assign the articles to output files, by the sizes of all articles.

    Tagged "report": the report on all pages.

    Each range was extracted as if it began outside of any page. If the range before it turns out to end in
    another parser state, it is extracted again from that state. This does not happen in dumps that MediaWiki
    has written.
    """

    def __init__(self, stage: ExtractionStage) -> None:
        self._stage = stage

    def process(
        self, gathered: tuple[int, Iterable[RangeArticles]], definitions: Definitions
    ) -> Iterator[Any]:
        dump = self._stage.ranges.path
        again = partial(ExtractRange(self._stage).extract, definitions)
        found = list(check_sequence(dump, gathered[1], again))
        # Both passes must have read the same bytes. If the digests differ, the dump changed in between.
        if definitions.digests is not None:
            check_digests(dump, definitions.digests, [one.facts.digest for one in found])
        yield from enumerate(distribute_articles(found))
        report = join_reports(one.report for one in found)
        report.template_pages = definitions.pages
        report.date = definitions.day.isoformat()
        left_out = tuple(number for one in found for number in one.left_out)
        yield beam.pvalue.TaggedOutput("report", (0, (report, (*definitions.left_out, *left_out))))


class WriteArticles(beam.DoFn):  # type: ignore[misc]
    """Write an output file of articles and return its manifest entry.

    The task may run twice, because both attempts write the same bytes to a temporary name and rename the
    file.
    """

    def __init__(self, stage: ExtractionStage) -> None:
        self._commit = stage.articles.commit

    def process(self, file: OutputFile) -> Iterator[tuple[int, FileEntry]]:
        number, pieces = file
        name = make_file_name(number)
        path = self._commit.path(name)
        storage.make_directory(storage.get_parent(path))
        with add_path_to_errors(path), self._commit.open_path(path) as output:
            sink = HashingSink(output.write)
            for piece in pieces:
                sink.write(read_value(FileRange(piece.path, piece.start, piece.bytes)))
        yield 0, sink.entry(name)


class HashDump(beam.DoFn):  # type: ignore[misc]
    """Hash the dump file. One worker does this while the others extract articles."""

    def __init__(self, stage: ExtractionStage) -> None:
        self._identity = stage.identity

    def process(self, dump: str) -> Iterator[tuple[int, str]]:
        with add_path_to_errors(dump):
            yield 0, self._identity.with_md5().md5


class FinishArticles(beam.DoFn):  # type: ignore[misc]
    """Write MD5SUMS and manifest. The task may run twice, because both attempts write the same bytes."""

    def __init__(self, stage: ExtractionStage) -> None:
        self._articles = stage.articles
        self._identity = stage.identity

    def process(self, gathered: tuple[int, Iterable[Entry]]) -> Iterator[str]:
        entries = list(gathered[1])
        files = [entry for entry in entries if isinstance(entry, FileEntry)]
        (md5,) = (entry for entry in entries if isinstance(entry, str))
        ((report, left_out),) = (entry for entry in entries if not isinstance(entry, FileEntry | str))
        self._identity._replace(md5=md5).check()
        files.sort(key=lambda entry: entry.name)
        size = sum(entry.bytes for entry in files)
        report = report.copy()
        report.files, report.bytes = len(files), size
        # release=False: a repeated task of an earlier stage may still need unfinished/. The launcher
        # removes it after the pipeline has ended.
        self._articles.finish(report, files, md5, set(left_out), release=False)
        for fault in (*report.warnings(), *report.faults):
            _LOGGER.warning("%s: %s", self._articles.dump, fault)
        add_to_counters(count_extraction(report))
        yield self._articles.commit.directory


def _lock_python_engine(settings: ExtractorSettings) -> AbstractContextManager[Any]:
    """Return a lock to hold during extraction if the engine is Python, else a context that does nothing.

    The C++ kernels can serve several threads at once.
    """
    return nullcontext() if use_native(settings.engine) else ONE_AT_A_TIME
