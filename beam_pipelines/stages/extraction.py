"""The stage from a dump to extracted articles."""

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
    """The path of a dump to the directory of its articles; calls ``bertdata.wiki.extract.extract``.

    One dump is one element: the worker that gets it runs processes of its own (``workers``, default one
    for each of its cores). Harmless when repeated: what is done is kept.
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
