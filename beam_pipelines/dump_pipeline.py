"""The pipeline that extracts articles from a Wikipedia dump.

A second pipeline then makes shards from the articles.
"""

import argparse
from typing import Any

from beam_pipelines.options import PROGRAM
from beam_pipelines.report.counters import RunMetrics, count_extraction
from beam_pipelines.runners.directory_run import run_for_directory
from beam_pipelines.runners.pipeline import has_local_workers, make_pipeline
from beam_pipelines.stages.extraction_stage import ExtractionStage, plan_extraction
from bertdata.io import storage
from bertdata.io.terminal import say_error
from bertdata.text.directory import EXTRACTED
from bertdata.wiki.articles.report import ExtractReport
from bertdata.wiki.open_extractor import check_engine, forget_extractors
from bertdata.wiki.settings import ExtractSettings


def extract_dump(
    flags: argparse.Namespace, beam_arguments: list[str], settings: ExtractSettings
) -> RunMetrics:
    """Extract the articles of a Wikipedia dump in a pipeline of its own, which runs before the main one.

    The main pipeline, which makes the shards, can only be built when the sizes of all articles are known,
    because these sizes decide how many text files it reads. Afterwards ``flags.input`` is set to the
    directory of the articles.

    Returns the pipeline's metrics. If an earlier run has already finished the directory, nothing is
    extracted, and the metrics are taken from the manifest of that run.
    """
    pipeline = make_pipeline(beam_arguments, flags)
    if has_local_workers(pipeline):
        check_engine(settings.extractor, flags.engine)
    stage = plan_dump(flags, settings)
    flags.input = [stage.articles.commit.directory]
    finished = stage.articles.finished()
    if finished is None:
        return _extract(pipeline, stage)
    stage.articles.keep_finished(finished)
    _print_warnings(stage, finished.report)
    return RunMetrics(totals=count_extraction(finished.report))


def preview_dump(flags: argparse.Namespace, settings: ExtractSettings) -> list[str]:
    """Return the lines that a dry run prints about the extraction of a dump.

    Raises the errors that a real run would raise before it starts.
    """
    return plan_dump(flags, settings).articles.preview(begun=False)


def plan_dump(flags: argparse.Namespace, settings: ExtractSettings) -> ExtractionStage:
    """Return the plan of the extraction: the dump's byte ranges, the settings, and the output directory.

    Raises InputError if the file is not a dump, and DatasetError if the output directory was made with other
    settings.
    """
    (dump,) = flags.input
    return plan_extraction(dump, storage.join(flags.text, EXTRACTED), settings, flags.engine)


def _extract(pipeline: Any, stage: ExtractionStage) -> RunMetrics:
    """Run the extraction pipeline and return its metrics."""
    # Imported here because importing Beam takes seconds, too long for --help and wrong usage.
    from beam_pipelines.stages.extraction import ExtractArticles

    _ = pipeline | "extract dump" >> ExtractArticles(stage)
    try:
        return run_for_directory(pipeline, stage.articles.commit)
    finally:
        forget_extractors()


def _print_warnings(stage: ExtractionStage, report: ExtractReport) -> None:
    """Print the warnings and errors that the report of a finished extraction contains."""
    for fault in (*report.warnings(), *report.faults):
        say_error(f"{PROGRAM}: warning: {stage.articles.dump}: {fault}")
