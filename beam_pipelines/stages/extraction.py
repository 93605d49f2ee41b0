"""Extraction: a dump to extracted articles."""

import logging
from collections.abc import Iterator

import apache_beam as beam

from beam_pipelines.report.counters import count, report_amounts
from beam_pipelines.report.errors import naming
from bertdata.io import storage
from bertdata.io.process_pool import available_cores
from bertdata.wiki.extract import extract
from bertdata.wiki.settings import ExtractSettings

_LOGGER = logging.getLogger(__name__)


class ExtractArticles(beam.DoFn):  # type: ignore[misc]
    """Extract the dump at the path; calls ``bertdata.wiki.extract.extract``.

    ::

        "enwiki-20200101-pages-articles.xml.bz2" -> "text/extracted"

    One dump is one element: the worker that gets it starts ``workers`` processes, by default one for
    each of its cores. A repeated call keeps the files that are finished.
    """

    def __init__(self, directory: str, settings: ExtractSettings, workers: int | None) -> None:
        self._directory = directory
        self._settings = settings
        self._workers = workers

    def process(self, dump: str) -> Iterator[str]:
        storage.make_directory(storage.parent(self._directory))
        with naming(dump):
            report = extract(
                dump, self._directory, self._settings, workers=self._workers or available_cores()
            )
        for fault in report.faults:
            _LOGGER.warning("%s: %s", dump, fault)
        count(report_amounts(report))
        yield self._directory
