"""A dump, articles or parts to shards on any Beam runner (``python -m beam_pipelines.prepare``)."""

import argparse
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from beam_pipelines.dump_pipeline import extract_dump, preview_dump
from beam_pipelines.options import PROGRAM, extract_settings, parse_flags, text_settings
from beam_pipelines.report.counters import RunMetrics, table, text_amounts
from beam_pipelines.report.logs import show_warnings, silence_lost_connections
from beam_pipelines.report.progress import shown_progress
from beam_pipelines.runners.pipeline import make_pipeline, run_pipeline, runs_here
from beam_pipelines.stages.text_stage import TextStage, finished_text, plan_text_stage
from beam_pipelines.transport.bundled_file import BundledFile
from beam_pipelines.transport.spill_files import SpillFiles
from bertdata import _native
from bertdata.build.dry_run import preview, settings_line, show_previews
from bertdata.build.estimate import estimate_lines
from bertdata.build.part_names import names_with_folders
from bertdata.build.plan import chosen_settings, find_parts, plan_targets, plan_warnings
from bertdata.build.task import Target, TaskPlan
from bertdata.cli.common.example_flags import given_settings
from bertdata.config.recipes import Recipe
from bertdata.dataset.manifest import summary
from bertdata.dataset.sources import find_sources
from bertdata.errors import BertDataError, SettingsError, TooFewArticles
from bertdata.io import storage
from bertdata.io.assets import find_punkt_tables, find_vocabulary
from bertdata.io.manifest_file import MANIFEST_NAME, parse_json
from bertdata.io.terminal import NOTHING_WRITTEN, say, say_error, say_text
from bertdata.text.fewer_eval_articles import with_remedy
from bertdata.text.reading import check_beginnings, find_extracted_files
from bertdata.text.settings import SegmentCounts, SegmentSettings


def main(arguments: list[str] | None = None) -> int:
    """Run the pipeline; the exit status: 0 done, 1 data at fault, 2 wrong usage, 130 interrupted."""
    try:
        return prepare(sys.argv[1:] if arguments is None else arguments)
    except BertDataError as error:
        say_error(f"{PROGRAM}: error: {error}")
        return error.exit_status
    except KeyboardInterrupt:
        say_error(f"{PROGRAM}: interrupted; finished shards are kept, run the same command to go on")
        return 130


def prepare(arguments: list[str]) -> int:
    """Run the pipeline and print its summary; errors and interrupts are raised."""
    flags, beam_arguments = parse_flags(arguments)
    flags.vocab = find_vocabulary(flags.vocab)
    if not _native.available():
        say_error(f"{PROGRAM}: the native engine is not built here; running the slow Python engine")
    recipe, settings = chosen_settings(flags.recipe, flags.phase, given_settings(flags))
    targets_for = partial(
        plan_targets,
        flags.output,
        recipe,
        flags.phase,
        settings,
        vocabulary_path=flags.vocab,
        num_shards=flags.num_shards,
    )
    text = None
    if flags.input_kind != "parts":
        text = text_settings(flags, recipe)
        check_text(flags.text, flags.punkt_tables, targets_for(parts=[]))
    for warning in plan_warnings(targets_for(parts=[]), flags.vocab):
        say_error(f"{PROGRAM}: warning: {warning}")
    show_warnings()
    silence_lost_connections()
    if flags.dry_run:
        preview_run(flags, beam_arguments, recipe, text, targets_for)
        return 0
    metrics = RunMetrics()
    if flags.input_kind == "dump":
        metrics = extract_dump(flags, beam_arguments, extract_settings(flags, recipe))
    source = plan_source(flags, text)
    targets = targets_for(parts=source.parts)
    pipeline = make_pipeline(beam_arguments, flags)
    if not runs_here(pipeline) and not storage.is_remote(flags.vocab):
        flags.vocab = BundledFile(flags.vocab)
    add_stages(pipeline, source, targets, flags)
    if source.counts is not None:
        metrics += RunMetrics(totals=text_amounts(source.counts))
    try:
        metrics += make_datasets(pipeline, source, targets)
    except TooFewArticles as error:
        raise with_remedy(error, source.files) from None
    for target in targets:
        path = storage.join(target.dataset.directory, MANIFEST_NAME)
        say(summary(target.dataset.directory, parse_json(storage.read_bytes(path), path)))
    say_text(table(metrics, flags.input_kind))
    return 0


def preview_run(
    flags: argparse.Namespace,
    beam_arguments: list[str],
    recipe: Recipe,
    text: SegmentSettings | None,
    targets_for: Callable[..., tuple[Target, ...]],
) -> None:
    """Print what the run would make; errors are those of the run before its start."""
    make_pipeline(beam_arguments, flags)
    if flags.input_kind == "dump":
        lines = preview_dump(flags, extract_settings(flags, recipe))
        lines.append(f"{flags.text}: parts, then shards; their number depends on the extracted articles")
        lines += [
            f"{target.dataset.directory}: {settings_line(target.dataset.plan)}"
            for target in targets_for(parts=[])
        ]
        say(*lines, NOTHING_WRITTEN)
        return
    source = plan_source(flags, text)
    if source.stage is not None:
        check_beginnings(source.files)
    plan = task_plan(flags, targets_for(parts=source.parts), source)
    previews = preview(plan, source.parts)
    if source.stage is not None:
        say(*source.stage.plan.lines(source.files, flags.text))
    show_previews(previews, estimate_lines(plan, source.parts, previews, workers=None))


def check_text(directory: str, punkt_tables: str | None, targets: tuple[Target, ...]) -> None:
    """Raise now the errors that would end a run from a dump after hours."""
    for target in targets:
        dataset = target.dataset
        if storage.join(directory, "").startswith(storage.join(dataset.directory, "")):
            raise SettingsError(
                f"--text {directory}: lies within the dataset {dataset.directory}; choose another"
            )
        dataset.refuse_others(inputs_known=False)
    find_punkt_tables(punkt_tables)  # fetched once, before the workers need them


@dataclass(frozen=True, kw_only=True, slots=True)
class PipelineInput:
    """The parts to make shards of; ``stage`` makes them from ``files``, or is None where they exist.

    counts: of an earlier run of the text stage, whose finished directory is used.
    """

    parts: list[str]
    files: list[str]
    stage: TextStage | None
    counts: SegmentCounts | None = None


def plan_source(flags: argparse.Namespace, text: SegmentSettings | None) -> PipelineInput:
    """Find the parts, or plan them from the extracted files."""
    if text is None:
        return PipelineInput(parts=find_parts(flags.input), files=[], stage=None)
    files = find_extracted_files(flags.input)
    stage = plan_text_stage(files, flags.text, text, flags.engine, flags.punkt_tables)
    if (finished := finished_text(stage, files)) is not None:
        return PipelineInput(parts=stage.parts, files=files, stage=None, counts=finished.counts)
    return PipelineInput(parts=stage.parts, files=files, stage=stage)


def add_stages(
    pipeline: Any, source: PipelineInput, targets: tuple[Target, ...], flags: argparse.Namespace
) -> None:
    """Add the stages from parts, or from articles, to finished datasets."""
    # Imported here, as in runners: importing Beam takes seconds, which --help and wrong usage do not need.
    import apache_beam as beam

    from beam_pipelines.stages.articles import make_parts
    from beam_pipelines.stages.shards import MakeShards, WriteManifests
    from beam_pipelines.stages.shuffled import MakeShuffledShards, ShuffleSettings

    if source.stage is None:
        parts = pipeline | "list parts" >> beam.Create(source.parts, reshuffle=False)
        cited = find_sources(source.parts)
        sources = pipeline | "list sources" >> beam.Create([cited], reshuffle=False)
    else:
        files = pipeline | "list files" >> beam.Create(list(enumerate(source.files)), reshuffle=False)
        parts, sources = files | "make parts" >> make_parts(source.stage)
    plan = task_plan(flags, targets, source)
    if flags.num_shards is None:
        make_shards = MakeShards(plan)
    else:
        shuffle = ShuffleSettings(num_shards=flags.num_shards, tasks=plan, spill_files=spill_files(targets))
        make_shards = MakeShuffledShards(shuffle)
    entries = parts | "make shards" >> make_shards
    _ = (entries, sources) | "write manifests" >> WriteManifests(targets, flags.vocab)


def task_plan(flags: argparse.Namespace, targets: tuple[Target, ...], source: PipelineInput) -> TaskPlan:
    """The settings that all tasks share."""
    return TaskPlan(
        vocabulary=flags.vocab,
        targets=targets,
        engine=flags.engine,
        skip_bad=flags.skip_bad_inputs,
        names=names_with_folders(source.parts),
    )


def spill_files(targets: tuple[Target, ...]) -> SpillFiles:
    """The spill files of a global shuffle, in the output directory: workers that share it share them."""
    return SpillFiles.below(targets[0].dataset.unfinished)


def make_datasets(pipeline: Any, source: PipelineInput, targets: tuple[Target, ...]) -> RunMetrics:
    """Claim the directories, run the pipeline, clean up; the pipeline's metrics.

    The launcher holds the directories' locks while it waits. Workers take none: they may run on many
    machines, and several attempts of one plan do no harm.
    """
    with ExitStack() as locks:
        if source.stage is not None:
            locks.enter_context(source.stage.text.commit.locked())
        for target in targets:
            locks.enter_context(target.dataset.locked())
        return _make_datasets(pipeline, source, targets)


def _make_datasets(pipeline: Any, source: PipelineInput, targets: tuple[Target, ...]) -> RunMetrics:
    if source.stage is not None:
        source.stage.text.commit.claim()
    for target in targets:
        target.dataset.begin()
    try:
        if runs_here(pipeline):
            shards = (targets[0].dataset.plan.num_shards or len(source.parts)) * len(targets)
            with shown_progress([target.dataset for target in targets], shards):
                metrics = run_pipeline(pipeline)
        else:
            metrics = run_pipeline(pipeline)
    except BaseException as error:
        if runs_here(pipeline):
            clean_up(source, targets)
        elif isinstance(error, KeyboardInterrupt):
            say_error(f"{PROGRAM}: the job goes on where it runs; stop it there")
        raise
    if source.stage is not None:
        source.stage.text.commit.release()
    return metrics


def clean_up(source: PipelineInput, targets: tuple[Target, ...]) -> None:
    """Remove the files that stopped worker processes were writing."""
    if source.stage is not None:
        source.stage.clean_up()
    spill_files(targets).remove_all()
    for target in targets:
        target.dataset.give_up()


if __name__ == "__main__":
    sys.exit(main())
