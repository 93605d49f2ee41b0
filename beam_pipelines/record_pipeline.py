"""The pipeline that makes text parts from records. A second pipeline then makes shards from the parts."""

import argparse
from dataclasses import replace
from typing import Any

from beam_pipelines.options import PROGRAM
from beam_pipelines.report.counters import RunMetrics, count_text
from beam_pipelines.runners.directory_run import run_for_directory
from beam_pipelines.runners.pipeline import has_local_workers, make_pipeline
from beam_pipelines.stages.record_stage import RecordStage, plan_record_stage
from beam_pipelines.transport.bundled_file import BundledFile
from bertdata.io import storage
from bertdata.io.terminal import say_error
from bertdata.steps.record_source import warn_of_escaped_markup
from bertdata.text.part_settings import PartSettings


def make_record_parts(
    flags: argparse.Namespace, beam_arguments: list[str], settings: PartSettings
) -> RunMetrics:
    """Make text parts from records in a pipeline of its own, which runs before the main one.

    The main pipeline, which makes the shards, can only be built when the number of parts is known, and for
    that all records must have been read. Afterwards ``flags.input`` is set to the directory of the parts.

    Returns the pipeline's metrics. If an earlier run has already finished the directory, nothing is made, and
    the metrics are taken from the manifest of that run.
    """
    pipeline = make_pipeline(beam_arguments, flags)
    if not has_local_workers(pipeline):
        settings = bundle_evaluation_files(settings)
    stage = plan_source_records(flags, settings)
    for note in stage.plan.notes:
        say_error(f"{PROGRAM}: warning: {note}")
    flags.input = [stage.text.commit.directory]
    finished = stage.find_finished()
    if finished is None:
        return _make_parts(pipeline, stage)
    stage.text.keep_finished(finished)
    return RunMetrics(totals=count_text(finished.counts))


def bundle_evaluation_files(settings: PartSettings) -> PartSettings:
    """Return the settings with the contents of the evaluation files added, so that the pickled job has them.

    Workers on other machines cannot read local files.
    """
    files = [
        one if storage.is_remote(one.path) else replace(one, path=BundledFile(one.path))
        for one in settings.selection.exclude
    ]
    return replace(settings, selection=replace(settings.selection, exclude=tuple(files)))


def preview_record_parts(flags: argparse.Namespace, settings: PartSettings) -> list[str]:
    """Return the lines that a dry run prints about the parts that would be made from records.

    Raises the errors that a real run would raise before it starts.
    """
    plan = plan_source_records(flags, settings).plan
    return [*plan.notes, *plan.lines(flags.text)]


def plan_source_records(flags: argparse.Namespace, settings: PartSettings) -> RecordStage:
    """Return the plan for making text parts from the records, and print warnings about the records' text.

    Raises DatasetError if the parts' directory was made with other settings.
    """
    stage = plan_record_stage(
        flags.input,
        flags.text,
        flags.input_kind,
        settings,
        engine=flags.engine,
        punkt_tables=flags.punkt_tables,
    )
    for warning in warn_of_escaped_markup(stage.plan):
        say_error(f"{PROGRAM}: warning: {warning}")
    return stage


def _make_parts(pipeline: Any, stage: RecordStage) -> RunMetrics:
    """Run the pipeline that makes the parts, and return its metrics."""
    # Imported here because importing Beam takes seconds, too long for --help and wrong usage.
    from beam_pipelines.stages.records import MakeRecordParts

    _ = pipeline | "make parts of records" >> MakeRecordParts(stage)
    return run_for_directory(pipeline, stage.text.commit)
