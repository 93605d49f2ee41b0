"""Program that creates shards on any Beam runner, from text parts or from inputs that become parts first.

Such inputs are Wikipedia dumps, articles, plain text and records. The program is run with
``python -m beam_pipelines.prepare``.
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
from bertdata.build.dry_run import Preview, describe_settings, preview_shards, show_previews
from bertdata.build.estimate import format_estimate
from bertdata.build.given_parts import find_parts
from bertdata.build.plan import list_plan_warnings
from bertdata.build.shard_task import Target
from bertdata.cli.common.dispatch import run_to_exit_status
from bertdata.cli.common.slow_engine import warn_about_slow_engine
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

MakePartSets = Callable[[list[str]], tuple[PartSet, ...]]
"""Type of a function that divides text parts into training and test parts, with the datasets of each."""


def main(arguments: list[str] | None = None) -> int:
    """Run the program.

    Returns the exit status: 0 done, 1 wrong data, 2 wrong usage, 130 interrupted.
    """
    words = expand_words(sys.argv[1:] if arguments is None else arguments)
    interrupted = "interrupted; finished shards are kept, run the same command to go on"
    return run_to_exit_status(PROGRAM, lambda: prepare(words), interrupted=interrupted)


def prepare(arguments: list[str]) -> int:
    """Run the pipelines for this command line and print a summary of the datasets that they made.

    Errors and interrupts are not caught here. ``main`` turns them into messages and an exit status.
    """
    flags, beam_arguments = parse_flags(arguments)
    check_runner(beam_arguments, flags)
    warn_about_slow_engine(PROGRAM)
    with plan_from_flags(flags) as plan:
        _check_and_run(flags, beam_arguments, plan)
    return 0


def _check_and_run(flags: argparse.Namespace, beam_arguments: list[str], plan: CreatePlan) -> None:
    """Make all checks that need not read the input, then run the pipelines or print what they would make."""
    refuse_overwritten_inputs(flags, plan.request)
    records = make_record_settings(flags)
    text = (
        None if records is not None or flags.input_kind == "parts" else make_text_settings(flags, plan.recipe)
    )
    between = None if plan.request.tokenizer is None else find_sentence_separator(flags, text or records)
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


def refuse_overwritten_inputs(flags: argparse.Namespace, given: CreateRequest) -> None:
    """Raise SettingsError if the dataset or the text parts would overwrite an input file."""
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
    sets_of: MakePartSets,
) -> None:
    """Run the pipelines and print a summary of the datasets that they made.

    text: settings for making parts from articles or plain text. None for another kind of input.
    records: settings for making parts from records. None for another kind of input.
    sets_of: function that divides the parts into training parts and test parts.
    """
    metrics = RunMetrics()
    if flags.input_kind == "dump":
        metrics = extract_dump(flags, beam_arguments, make_extract_settings(flags, plan.recipe))
    if records is not None:
        metrics = make_record_parts(flags, beam_arguments, records)
    source = find_or_plan_parts(flags, text)
    if source.keep is not None:
        source.keep()
    note = describe_engine(flags.tokenizer_file, flags.engine)
    say(*source.notes, *([] if note is None else [note]))
    sets = sets_of(source.parts)
    pipeline = make_pipeline(beam_arguments, flags)
    # Workers on other machines cannot read a local vocabulary file. So its contents are sent to them inside
    # the pickled job.
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
    sets_of: MakePartSets,
) -> None:
    """Print what a run would make, without writing anything. The arguments are those of ``run_pipelines``.

    Raises the errors that a real run would raise before it starts.
    """
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
    source = find_or_plan_parts(flags, text)
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
    """Check the directory for text parts, and fetch the tables of the sentence splitter Punkt.

    Both are done before the run, so that a fault does not end it after hours of work.

    directory: output directory of the text parts. It must not lie within a dataset.
    settings: settings of the text parts, which say which tables the run needs.
    targets: the datasets that the run makes.
    """
    for target in targets:
        dataset = target.dataset
        if storage.join(directory, "").startswith(storage.join(dataset.directory, "")):
            raise SettingsError(
                f"--text {directory}: lies within the dataset {dataset.directory}; choose another"
            )
        dataset.refuse_others(inputs_known=False)
    # Download the tables once here. Otherwise every worker would download them.
    fetch_tables(settings, punkt_tables)


def check_books(patterns: list[str]) -> None:
    """Check the files of books (``--books``), so that a wrong file is found before the dump is extracted."""
    for path in KINDS[TEXT].find(patterns).files:
        KINDS[TEXT].check_beginning(path)


@dataclass(frozen=True, kw_only=True, slots=True)
class PipelineInput:
    """The input of the pipeline that makes shards: text parts, and the files from which they are made.

    parts: paths of the parts, which exist already or are made by ``stage``.
    files: paths of the text files to make the parts from. Empty if the parts are the user's input.
    kinds: the kind of each of these files (see ``bertdata.text.input_kinds``).
    stage: plan of the stage that makes the parts. None if the parts exist already.
    counts: counts in the manifest of the earlier run that made the parts. None if there was no such run.
    notes: lines to print about parts and files that are left out.
    keep: function that tidies up the directory of the parts of an earlier run, which a dry run does not call.
        None if there was no such run.
    """

    parts: list[str]
    files: list[str]
    kinds: list[str]
    stage: TextStage | None
    counts: SegmentCounts | None = None
    notes: tuple[str, ...] = ()
    keep: Callable[[], None] | None = None


def find_sentence_separator(
    flags: argparse.Namespace, text: SegmentSettings | PartSettings | None
) -> str | None:
    """Return the text that separates two sentences of a document, or None if it is not known.

    For existing parts it is read from their manifest, if they have one. Otherwise it follows from the
    settings.
    """
    if text is not None:
        found: str = text.as_json().get("between", " ")
        return found
    return find_provenance(find_parts(flags.input).parts).between


def find_or_plan_parts(flags: argparse.Namespace, text: SegmentSettings | None) -> PipelineInput:
    """Find the text parts if they exist already, otherwise plan how to make them from text files.

    For a dump, the text files are the articles that were extracted from it.

    text: settings for making parts. None if the parts exist already.
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
            keep=partial(stage.text.keep_finished, finished),
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
    """Add all stages to the pipeline: from text parts, or from text files, to finished datasets.

    tokenizer: the tokeniser's file, with the path under which workers open it.
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
    """Return the datasets of all sets of parts in one list."""
    return tuple(target for one in sets for target in one.targets)


def choose_spill_files(targets: tuple[Target, ...]) -> SpillFiles:
    """Return the spill files of a global shuffle: temporary files for values on their way between two stages.

    They lie in the output directory of the first dataset, which all workers share.
    """
    return SpillFiles.in_directory(targets[0].dataset.unfinished)


def make_datasets(pipeline: Any, source: PipelineInput, sets: tuple[PartSet, ...]) -> RunMetrics:
    """Lock the output directories, run the pipeline, and return its metrics.

    Only the launching process holds the locks, until the pipeline has ended. Workers hold none, because they
    may run on many machines, and because Beam may run the same task twice at the same time. Two such attempts
    do no harm, since both write the same bytes.
    """
    with ExitStack() as locks:
        if source.stage is not None:
            locks.enter_context(source.stage.text.commit.locked())
        for target in list_targets(sets):
            locks.enter_context(target.dataset.locked())
        return _make_datasets(pipeline, source, sets)


def _make_datasets(pipeline: Any, source: PipelineInput, sets: tuple[PartSet, ...]) -> RunMetrics:
    """Run the pipeline in the locked output directories, and return its metrics.

    First this run's plan is written to each directory. If a run with local workers fails, its half-written
    files are deleted.
    """
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
    # The stage that wrote the manifest of the text parts had to keep the directory unfinished/, because a
    # second attempt at a task might still have been using it. Now no task is running any more.
    if source.stage is not None:
        source.stage.text.commit.release()
    return metrics


def clean_up(source: PipelineInput, targets: tuple[Target, ...]) -> None:
    """Delete the files that stopped workers have half written.

    A directory that has no finished file is also released: its plan is deleted, so that a run with other
    settings may use the directory.
    """
    if source.stage is not None:
        source.stage.clean_up()
    choose_spill_files(targets).remove_all()
    for target in targets:
        target.dataset.give_up()


if __name__ == "__main__":
    sys.exit(main())
