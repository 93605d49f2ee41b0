"""Creation of shards from text parts, or from any earlier kind of input, on any Beam runner.

It is run with ``python -m beam_pipelines.prepare``.
"""

import argparse
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from beam_pipelines.dump_pipeline import extract_dump, preview_dump
from beam_pipelines.options import (
    PROGRAM,
    make_extract_settings,
    make_record_settings,
    make_text_settings,
    parse_flags,
    plan_from_flags,
)
from beam_pipelines.part_sets import PartSet, plan_part_sets
from beam_pipelines.record_pipeline import make_record_parts, preview_record_parts
from beam_pipelines.report.counters import RunMetrics, count_text, format_metrics
from beam_pipelines.report.logs import show_warnings, silence_lost_connections
from beam_pipelines.report.progress import show_progress
from beam_pipelines.runners.pipeline import check_runner, has_local_workers, make_pipeline, run_pipeline
from beam_pipelines.stages.text_stage import TextStage, find_finished_text, plan_text_stage
from beam_pipelines.transport.bundled_file import BundledFile
from beam_pipelines.transport.spill_files import SpillFiles
from bertdata import _native
from bertdata.build.dry_run import Preview, describe_settings, preview_shards, show_previews
from bertdata.build.estimate import format_estimate
from bertdata.build.given_parts import find_parts
from bertdata.build.plan import list_plan_warnings
from bertdata.build.shard_task import Target
from bertdata.cli.common.dispatch import run_to_exit_status
from bertdata.dataset.lost_text import check_lost_text
from bertdata.dataset.manifest import format_summary
from bertdata.dataset.provenance import find_provenance
from bertdata.errors import SettingsError, TooFewArticles
from bertdata.io import storage
from bertdata.io.home import expand_words
from bertdata.io.manifest_file import MANIFEST_NAME, parse_json
from bertdata.io.outputs import refuse_input_as_output
from bertdata.io.terminal import NOTHING_WRITTEN, say, say_error, say_text
from bertdata.steps.create_plan import CreatePlan
from bertdata.steps.create_request import CreateRequest
from bertdata.steps.values import convert_optional_path, list_paths
from bertdata.text.directory import refuse_text_inputs
from bertdata.text.escaped_articles import find_escape_warnings
from bertdata.text.input_kinds import ARTICLES, KINDS, TEXT, check_beginnings
from bertdata.text.languages import ENGLISH, list_language_notes
from bertdata.text.load_splitter import fetch_tables
from bertdata.text.mlperf_evaluation import add_remedy
from bertdata.text.part_settings import PartSettings
from bertdata.text.settings import SegmentCounts, SegmentSettings
from bertdata.text.text_inputs import find_inputs
from bertdata.tokens.files import TokenizerFile
from bertdata.tokens.load import describe_engine

SetsOf = Callable[[list[str]], tuple[PartSet, ...]]
"""A function that divides parts into sets, with the datasets of each set."""


def main(arguments: list[str] | None = None) -> int:
    """Run the program.

    Returns the exit status: 0 done, 1 wrong data, 2 wrong usage, 130 interrupted.
    """
    words = expand_words(sys.argv[1:] if arguments is None else arguments)
    interrupted = "interrupted; finished shards are kept, run the same command to go on"
    return run_to_exit_status(PROGRAM, lambda: prepare(words), interrupted=interrupted)


def prepare(arguments: list[str]) -> int:
    """Run the pipeline and print its summary. Raises errors and interrupts."""
    flags, beam_arguments = parse_flags(arguments)
    check_runner(beam_arguments, flags)
    if not _native.available():
        say_error(f"{PROGRAM}: the native engine is not built here; running the slow Python engine")
    with plan_from_flags(flags) as plan:
        _prepare(flags, beam_arguments, plan)
    return 0


def _prepare(flags: argparse.Namespace, beam_arguments: list[str], plan: CreatePlan) -> None:
    """Make all checks that do not read the input, then run the pipeline or the dry run."""
    refuse_outputs(flags, plan.request)
    records = make_record_settings(flags)
    text = (
        None if records is not None or flags.input_kind == "parts" else make_text_settings(flags, plan.recipe)
    )
    between = None if plan.request.tokenizer is None else find_between(flags, text or records)
    flags.tokenizer_file = plan.find_tokenizer(between)
    has_test_shards = text is not None and text.recipe == "nvidia"
    sets_of = partial(plan_part_sets, plan, flags.tokenizer_file, has_test_shards=has_test_shards)
    early = sets_of([])
    if (stage := text or records) is not None:
        check_text(flags.text, stage, flags.punkt_tables, list_targets(early))
        say(*list_language_notes(stage.language or ENGLISH))
    if flags.input_kind == "dump":
        check_books(flags.books)
    plan.check_tokenizer(flags.tokenizer_file)
    for warning in list_plan_warnings(flags.tokenizer_file):
        say_error(f"{PROGRAM}: warning: {warning}")
    silence_lost_connections()
    with show_warnings():
        if flags.dry_run:
            preview_run(flags, beam_arguments, plan, text, records, sets_of)
        else:
            run_pipelines(flags, beam_arguments, plan, text, records, sets_of)


def refuse_outputs(flags: argparse.Namespace, given: CreateRequest) -> None:
    """Raise SettingsError if the dataset or the text parts would overwrite an input."""
    excluded = list_paths(flags.text_request.exclude or ())
    tokenizer = [convert_optional_path(given.vocab), convert_optional_path(given.tokenizer)]
    inputs = [*flags.input, *flags.books, *excluded, *tokenizer]
    refuse_input_as_output(flags.output, inputs)
    if flags.text is not None:
        refuse_text_inputs(flags.text, inputs)


def run_pipelines(
    flags: argparse.Namespace,
    beam_arguments: list[str],
    plan: CreatePlan,
    text: SegmentSettings | None,
    records: PartSettings | None,
    sets_of: SetsOf,
) -> None:
    """Run the pipelines and print a summary of the datasets that they made.

    text: settings for making parts from text. None if the input is parts.
    records: settings for making parts from records. None if the input is of another kind.
    """
    metrics = RunMetrics()
    if flags.input_kind == "dump":
        metrics = extract_dump(flags, beam_arguments, make_extract_settings(flags, plan.recipe))
    if records is not None:
        metrics = make_record_parts(flags, beam_arguments, records)
    source = plan_source(flags, text)
    note = describe_engine(flags.tokenizer_file, flags.engine)
    say(*source.notes, *([] if note is None else [note]))
    sets = sets_of(source.parts)
    pipeline = make_pipeline(beam_arguments, flags)
    # Workers on other machines cannot read a local vocabulary. It travels inside the pickled job.
    file = flags.tokenizer_file
    if not has_local_workers(pipeline) and not storage.is_remote(file.path):
        flags.tokenizer_file = replace(file, path=BundledFile(file.path))
    add_stages(pipeline, source, sets, plan, flags.tokenizer_file)
    if source.counts is not None:
        metrics += RunMetrics(totals=count_text(source.counts))
    try:
        metrics += make_datasets(pipeline, source, sets)
    except TooFewArticles as error:
        raise add_remedy(error, source.files, source.kinds) from None
    for target in list_targets(sets):
        path = storage.join(target.dataset.directory, MANIFEST_NAME)
        manifest = parse_json(storage.read_bytes(path), path)
        for warning in check_lost_text(target.dataset.directory, manifest):
            say_error(f"{PROGRAM}: warning: {warning}")
        say(format_summary(target.dataset.directory, manifest))
    say_text(format_metrics(metrics, flags.input_kind))


def preview_run(
    flags: argparse.Namespace,
    beam_arguments: list[str],
    plan: CreatePlan,
    text: SegmentSettings | None,
    records: PartSettings | None,
    sets_of: SetsOf,
) -> None:
    """Print what a run would make. Raises the errors that a run raises before it starts."""
    make_pipeline(beam_arguments, flags)
    first = None
    if flags.input_kind == "dump":
        first = preview_dump(flags, make_extract_settings(flags, plan.recipe))
        first.append(f"{flags.text}: parts, then shards; their number depends on the extracted articles")
    elif records is not None:
        first = preview_record_parts(flags, records)
    if first is not None:
        first += [
            f"{target.dataset.directory}: {describe_settings(target)}" for target in list_targets(sets_of([]))
        ]
        say(*first, NOTHING_WRITTEN)
        return
    source = plan_source(flags, text)
    if source.stage is not None:
        check_beginnings(source.files, source.kinds)
    say(*source.notes)
    previews: list[Preview] = []
    estimate: list[str] = []
    for one in sets_of(source.parts):
        tasks = plan.tasks(one.parts, flags.tokenizer_file, one.targets)
        found = preview_shards(tasks, one.parts)
        previews += found
        estimate += format_estimate(tasks, one.parts, found, workers=None)
    if source.stage is not None:
        say(*source.stage.plan.lines(source.files, flags.text))
    show_previews(previews, list(dict.fromkeys(estimate)))


def check_text(
    directory: str,
    settings: SegmentSettings | PartSettings,
    punkt_tables: str | None,
    targets: tuple[Target, ...],
) -> None:
    """Check the text directory and Punkt's tables before the run, so that a fault does not end it later."""
    for target in targets:
        dataset = target.dataset
        if storage.join(directory, "").startswith(storage.join(dataset.directory, "")):
            raise SettingsError(
                f"--text {directory}: lies within the dataset {dataset.directory}; choose another"
            )
        dataset.refuse_others(inputs_known=False)
    fetch_tables(settings, punkt_tables)  # downloads the tables once, before all workers would try


def check_books(patterns: list[str]) -> None:
    """Check the files of books before the run, so that a wrong file is found before the dump is extracted."""
    for path in KINDS[TEXT].find(patterns).files:
        KINDS[TEXT].check_beginning(path)


@dataclass(frozen=True, kw_only=True, slots=True)
class PipelineInput:
    """The parts to make shards from.

    files, kinds: text files to make the parts from, and their kinds (see ``bertdata.text.input_kinds``).
    stage: makes the parts from ``files``. None if the parts exist.
    counts: counts of an earlier run of the text stage, if its finished directory is used.
    notes: lines about parts and files that are left out.
    """

    parts: list[str]
    files: list[str]
    kinds: list[str]
    stage: TextStage | None
    counts: SegmentCounts | None = None
    notes: tuple[str, ...] = ()


def find_between(flags: argparse.Namespace, text: SegmentSettings | PartSettings | None) -> str | None:
    """Return the text that belongs between two sentences.

    It is read from the manifest of existing parts, if they have a manifest.
    """
    if text is not None:
        found: str = text.as_json().get("between", " ")
        return found
    return find_provenance(find_parts(flags.input).parts).between


def plan_source(flags: argparse.Namespace, text: SegmentSettings | None) -> PipelineInput:
    """Return the existing text parts, or plan parts from text files.

    The text files of a dump are its extracted articles.
    """
    if text is None:
        given = find_parts(flags.input)
        return PipelineInput(parts=given.parts, files=[], kinds=[], stage=None, notes=given.notes)
    kind = ARTICLES if flags.input_kind == "dump" else flags.input_kind
    inputs = find_inputs(flags.input, kind, flags.books)
    files, kinds = inputs.files, inputs.kinds
    for warning in find_escape_warnings(files, kinds, text.escaped_articles):
        say_error(f"{PROGRAM}: warning: {warning}")
    stage = plan_text_stage(files, flags.text, text, flags.engine, flags.punkt_tables, kinds)
    if (finished := find_finished_text(stage, files)) is not None:
        return PipelineInput(
            parts=stage.parts,
            files=files,
            kinds=stage.plan.kinds,
            stage=None,
            counts=finished.counts,
            notes=inputs.notes,
        )
    return PipelineInput(
        parts=stage.parts, files=files, kinds=stage.plan.kinds, stage=stage, notes=inputs.notes
    )


def add_stages(
    pipeline: Any,
    source: PipelineInput,
    sets: tuple[PartSet, ...],
    plan: CreatePlan,
    tokenizer: TokenizerFile,
) -> None:
    """Add all stages to the pipeline, from parts or text to finished datasets.

    tokenizer: the tokeniser's file, with the path at which workers open it.
    """
    # Imported here because importing Beam takes seconds, too long for --help and wrong usage.
    import apache_beam as beam

    from beam_pipelines.stages.articles import make_parts
    from beam_pipelines.stages.shards import MakeShards, WriteManifests
    from beam_pipelines.stages.shuffled import MakeShuffledShards, ShuffleSettings

    if source.stage is None:
        parts = pipeline | "list parts" >> beam.Create(source.parts, reshuffle=False)
        cited = find_provenance(source.parts)
        provenance = pipeline | "list sources" >> beam.Create([cited], reshuffle=False)
    else:
        numbered = list(zip(range(len(source.files)), source.files, source.kinds, strict=True))
        files = pipeline | "list files" >> beam.Create(numbered, reshuffle=False)
        parts, provenance = files | "make parts" >> make_parts(source.stage)
    for one in sets:
        tasks = plan.tasks(one.parts, tokenizer, one.targets)
        make_shards: beam.PTransform = MakeShards(tasks)
        if one.num_shards is not None:
            shuffle = ShuffleSettings(
                num_shards=one.num_shards, tasks=tasks, spill_files=choose_spill_files(one.targets)
            )
            make_shards = MakeShuffledShards(shuffle)
        chosen = parts | f"choose parts{one.label}" >> beam.Filter(is_in_set, frozenset(one.parts))
        entries = chosen | f"make shards{one.label}" >> make_shards
        manifests = WriteManifests(one.targets, tokenizer.path)
        _ = (entries, provenance) | f"write manifests{one.label}" >> manifests


def is_in_set(part: str, parts: frozenset[str]) -> bool:
    """Return True if the part is in the set."""
    return part in parts


def list_targets(sets: tuple[PartSet, ...]) -> tuple[Target, ...]:
    """Return the datasets of all sets."""
    return tuple(target for one in sets for target in one.targets)


def choose_spill_files(targets: tuple[Target, ...]) -> SpillFiles:
    """Return the spill files of a global shuffle.

    They lie in the output directory, which all workers share.
    """
    return SpillFiles.below(targets[0].dataset.unfinished)


def make_datasets(pipeline: Any, source: PipelineInput, sets: tuple[PartSet, ...]) -> RunMetrics:
    """Lock and claim the output directories, run the pipeline, and clean up. Returns the pipeline's metrics.

    Only the launching process holds locks, while it waits. Workers hold none, because they may run on many
    machines, and Beam may run the same task twice at once. That is harmless, since both attempts write the
    same bytes.
    """
    with ExitStack() as locks:
        if source.stage is not None:
            locks.enter_context(source.stage.text.commit.locked())
        for target in list_targets(sets):
            locks.enter_context(target.dataset.locked())
        return _make_datasets(pipeline, source, sets)


def _make_datasets(pipeline: Any, source: PipelineInput, sets: tuple[PartSet, ...]) -> RunMetrics:
    """Claim the output directories, run the pipeline, and clean up. Called while they are locked."""
    if source.stage is not None:
        source.stage.text.commit.claim()
    targets = list_targets(sets)
    for target in targets:
        target.dataset.begin()
    try:
        if has_local_workers(pipeline):
            shards = sum(one.shards for one in sets)
            with show_progress([target.dataset for target in targets], shards):
                metrics = run_pipeline(pipeline)
        else:
            metrics = run_pipeline(pipeline)
    except BaseException as error:
        # Clean up only if all workers have ended. Workers on other machines may still be writing.
        if has_local_workers(pipeline):
            clean_up(source, targets)
        elif isinstance(error, KeyboardInterrupt):
            say_error(f"{PROGRAM}: the job goes on where it runs; stop it there")
        raise
    # The stage that wrote the text's manifest had to leave unfinished/, because another attempt at some task
    # might still have been using it.
    if source.stage is not None:
        source.stage.text.commit.release()
    return metrics


def clean_up(source: PipelineInput, targets: tuple[Target, ...]) -> None:
    """Delete half-written files of stopped workers, and release directories without finished files.

    Runs with other settings may use a released directory.
    """
    if source.stage is not None:
        source.stage.clean_up()
    choose_spill_files(targets).remove_all()
    for target in targets:
        target.dataset.give_up()


if __name__ == "__main__":
    sys.exit(main())
