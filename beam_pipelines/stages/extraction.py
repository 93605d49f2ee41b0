"""Stages that extract articles from a dump: collect template definitions, extract articles, write files.

All workers share the work. An element is the number of a byte range of the dump, or of an output file.
Workers store the articles of a range in a temporary file in the output directory or bucket, so that only
small values pass through the runner.

Two steps need the results of all ranges and run on one worker. The first writes the templates of all ranges
to one file, which the workers map into memory. The second decides from the sizes of all articles which output
file each article goes to.
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
"""Number of an output file, and the places of its articles in the temporary files."""

PageReport = tuple[ExtractReport, tuple[str, ...]]
"""The report on all pages of the dump, and the ids of the pages that were left out because of errors."""

Entry = FileEntry | PageReport | str
"""Piece of information for the manifest of the articles: a file's entry, the report on the pages, or the
dump's md5.
"""


class ExtractArticles(beam.PTransform):  # type: ignore[misc]
    """Write the articles of a dump and their manifest. The output is the path of their directory.

    For the articles of byte range 3, some of which go to output file 17::

        3 -> (0, RangeArticles(...)) -> (17, [pieces of AA/wiki_17])
    """

    def __init__(self, stage: ExtractionStage) -> None:
        super().__init__()
        self._stage = stage

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection[str]:
        """Connect the stages from the byte ranges of the dump to the articles' manifest."""
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
        # The templates are a side input. So no range is extracted before the templates of all ranges are
        # collected.
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
    """Collect the template definitions of all byte ranges. The output is a single Definitions object."""

    def __init__(self, stage: ExtractionStage) -> None:
        super().__init__()
        self._stage = stage

    def expand(self, ranges: beam.PCollection[int]) -> beam.PCollection[Definitions]:
        """Connect the stages from byte ranges to the file of all templates."""
        return (
            ranges
            | "collect definitions" >> beam.ParDo(CollectRange(self._stage))
            | "gather definitions" >> beam.GroupByKey()
            | "write template file" >> beam.ParDo(JoinDefinitions(self._stage))
        )


class CollectRange(beam.DoFn):  # type: ignore[misc]
    """Collect the template definitions in a byte range of the dump, and the date of its newest revision."""

    def __init__(self, stage: ExtractionStage) -> None:
        self._stage = stage

    def process(self, number: int) -> Iterator[tuple[int, RangeDefinitions]]:
        """Collect the definitions of the range with this number, as if it began between two pages."""
        yield 0, self.collect(number, START)

    def collect(self, number: int, state: BlockState) -> RangeDefinitions:
        """Return the template definitions in the byte range with this number.

        state: state of the dump's parser at the beginning of the range.
        """
        stage = self._stage
        settings = stage.make_settings()
        path = stage.make_temporary_path() if stage.articles.settings.templates else None
        days = stage.articles.day is None
        with add_path_to_errors(stage.ranges.path), _lock_python_engine(settings):
            return collect_definitions(stage.ranges, number, settings, path, days=days, state=state)


class JoinDefinitions(beam.DoFn):  # type: ignore[misc]
    """Write the templates of all byte ranges to one file, and choose the date that date templates show."""

    def __init__(self, stage: ExtractionStage) -> None:
        self._stage = stage

    def process(self, gathered: tuple[int, Iterable[RangeDefinitions]]) -> Iterator[Definitions]:
        """Join the definitions of all ranges.

        gathered: the key 0, and the definitions of each range.
        """
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
    """Extract the articles of a byte range of the dump into a new temporary file.

    The file's name is random. If Beam runs the task twice, the second attempt writes another file, and a
    worker that reads the first file is not disturbed.
    """

    def __init__(self, stage: ExtractionStage) -> None:
        self._stage = stage

    def process(self, number: int, definitions: Definitions) -> Iterator[tuple[int, RangeArticles]]:
        """Extract the range with this number, as if it began between two pages."""
        yield 0, self.extract(definitions, number, START)

    def extract(self, definitions: Definitions, number: int, state: BlockState) -> RangeArticles:
        """Extract the articles of the byte range with this number, and return their sizes and places.

        state: state of the dump's parser at the beginning of the range.
        """
        stage = self._stage
        with add_path_to_errors(stage.ranges.path):
            settings = stage.make_settings(definitions)
            with _lock_python_engine(settings):
                return extract_range(stage.ranges, number, settings, stage.make_temporary_path(), state=state)


class AssignToFiles(beam.DoFn):  # type: ignore[misc]
    """Assign all articles to output files, by their sizes. Output "report" has the report on all pages.

    Each byte range was extracted as if it began between two pages. If the range before it ends in another
    state of the parser, the range is extracted again from that state. This does not happen in dumps that
    MediaWiki has written.
    """

    def __init__(self, stage: ExtractionStage) -> None:
        self._stage = stage

    def process(
        self, gathered: tuple[int, Iterable[RangeArticles]], definitions: Definitions
    ) -> Iterator[Any]:
        """Assign the articles of all ranges.

        gathered: the key 0, and the sizes and places of the articles of each range.
        """
        dump = self._stage.ranges.path
        again = partial(ExtractRange(self._stage).extract, definitions)
        found = list(check_sequence(dump, gathered[1], again))
        # The first pass (templates) and the second (articles) must have read the same bytes. If their digests
        # differ, the dump was changed in between.
        if definitions.digests is not None:
            check_digests(dump, definitions.digests, [one.facts.digest for one in found])
        yield from enumerate(distribute_articles(found))
        report = join_reports(one.report for one in found)
        report.template_pages = definitions.pages
        report.date = definitions.day.isoformat()
        left_out = tuple(number for one in found for number in one.left_out)
        yield beam.pvalue.TaggedOutput("report", (0, (report, (*definitions.left_out, *left_out))))


class WriteArticles(beam.DoFn):  # type: ignore[misc]
    """Write an output file with its articles. The output is the file's entry for the manifest.

    Beam may run the task twice. Both attempts write the same bytes under a temporary name and then rename the
    file.
    """

    def __init__(self, stage: ExtractionStage) -> None:
        self._commit = stage.articles.commit

    def process(self, file: OutputFile) -> Iterator[tuple[int, FileEntry]]:
        """Write one output file."""
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
    """Compute the md5 of the dump file. One worker does this while the others extract articles."""

    def __init__(self, stage: ExtractionStage) -> None:
        self._identity = stage.identity

    def process(self, dump: str) -> Iterator[tuple[int, str]]:
        """Hash the dump with this path."""
        with add_path_to_errors(dump):
            yield 0, self._identity.with_md5().md5


class FinishArticles(beam.DoFn):  # type: ignore[misc]
    """Write MD5SUMS and the manifest of the articles.

    Beam may run the task twice, since both attempts write the same bytes.
    """

    def __init__(self, stage: ExtractionStage) -> None:
        self._articles = stage.articles
        self._identity = stage.identity

    def process(self, gathered: tuple[int, Iterable[Entry]]) -> Iterator[str]:
        """Write the manifest.

        gathered: the key 0, and the entries of all files, the report and the dump's md5.
        """
        entries = list(gathered[1])
        files = [entry for entry in entries if isinstance(entry, FileEntry)]
        (md5,) = (entry for entry in entries if isinstance(entry, str))
        ((report, left_out),) = (entry for entry in entries if not isinstance(entry, FileEntry | str))
        self._identity._replace(md5=md5).check()
        files.sort(key=lambda entry: entry.name)
        size = sum(entry.bytes for entry in files)
        report = report.copy()
        report.files, report.bytes = len(files), size
        # With release=False the directory unfinished/ is kept, because a repeated task of an earlier stage
        # may still need it. The launching process removes it when the pipeline has ended.
        self._articles.finish(report, files, md5, set(left_out), release=False)
        for fault in (*report.warnings(), *report.faults):
            _LOGGER.warning("%s: %s", self._articles.dump, fault)
        add_to_counters(count_extraction(report))
        yield self._articles.commit.directory


def _lock_python_engine(settings: ExtractorSettings) -> AbstractContextManager[Any]:
    """Return a lock to hold during extraction by the Python engine.

    For the C++ engine, which can serve several threads at once, a context manager that does nothing is
    returned.
    """
    return nullcontext() if use_native(settings.engine) else ONE_AT_A_TIME
