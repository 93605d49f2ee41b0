"""``python -m beam_pipelines.prepare``: a dump, articles or parts to verified shards on any Beam runner."""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from beam_pipelines.options import PROGRAM, parse_flags, text_settings
from beam_pipelines.report.counters import Figures, counted, table, text_amounts
from beam_pipelines.report.errors import clear_error
from beam_pipelines.report.logs import hush_lost_connections, show_warnings
from beam_pipelines.report.progress import watching
from beam_pipelines.runners.pipeline import make_pipeline, runs_here
from beam_pipelines.stages.text_stage import TextStage, finished_text, plan_text_stage
from beam_pipelines.transport.bundled_file import CarriedFile
from beam_pipelines.transport.spill_files import ParcelRoom
from bertdata import _native
from bertdata.build.dry_run import NOTHING_WRITTEN, preview, settings_line, show_previews
from bertdata.build.plan import chosen_settings, find_parts, plan_targets
from bertdata.build.task import Target, TaskPlan
from bertdata.cli.common.example_flags import given_settings
from bertdata.cli.common.text_flags import given_extract_settings
from bertdata.dataset.manifest import summary
from bertdata.dataset.sources import find_sources
from bertdata.errors import BertDataError, SettingsError
from bertdata.io import storage
from bertdata.io.assets import find_punkt_tables, find_vocabulary
from bertdata.io.manifest_file import MANIFEST_NAME, parse_json
from bertdata.text.reading import find_extracted_files
from bertdata.text.settings import SegmentCounts, SegmentSettings
from bertdata.wiki.extract import preview_extraction


def main(arguments: list[str] | None = None) -> int:
    """Run the pipeline; the exit status: 0 done, 1 data at fault, 2 wrong usage, 130 interrupted."""
    try:
        return prepare(sys.argv[1:] if arguments is None else arguments)
    except BertDataError as error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print(
            f"{PROGRAM}: interrupted; finished shards are kept, run the same command to go on",
            file=sys.stderr,
        )
        return 130


def prepare(arguments: list[str]) -> int:
    flags, beam_words = parse_flags(arguments)
    flags.vocab = find_vocabulary(flags.vocab)
    if not _native.available():
        print(
            f"{PROGRAM}: the native engine is not built here; running the slow Python engine", file=sys.stderr
        )
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
    show_warnings()
    hush_lost_connections()
    if flags.dry_run:
        preview_run(flags, beam_words, text, targets_for)
        return 0
    figures = Figures()
    if flags.input_kind == "dump":
        figures = extract_dump(flags, beam_words)
    source = plan_source(flags, text)
    targets = targets_for(parts=source.parts)
    pipeline = make_pipeline(beam_words, flags)
    if not runs_here(pipeline) and not storage.is_remote(flags.vocab):
        flags.vocab = CarriedFile(flags.vocab)
    add_stages(pipeline, source, targets, flags)
    if source.counts is not None:
        figures += Figures(totals=text_amounts(source.counts))
    figures += make_datasets(pipeline, source, targets)
    for target in targets:
        path = storage.join(target.dataset.directory, MANIFEST_NAME)
        print(summary(target.dataset.directory, parse_json(storage.read_bytes(path), path)))
    print(table(figures, flags.input_kind))
    return 0


def preview_run(
    flags: argparse.Namespace,
    beam_words: list[str],
    text: SegmentSettings | None,
    targets_for: Callable[..., tuple[Target, ...]],
) -> None:
    """Print what the run would make; errors as the run's own before it starts."""
    make_pipeline(beam_words, flags)
    if flags.input_kind == "dump":
        (dump,), articles = flags.input, storage.join(flags.text, "extracted")
        lines = preview_extraction(dump, articles, given_extract_settings(flags))
        lines.append(
            f"{flags.text}: parts, and from them the shards: how many, the extracted articles decide"
        )
        lines += [
            f"{target.dataset.directory}: {settings_line(target.dataset.plan)}"
            for target in targets_for(parts=[])
        ]
        print("\n".join([*lines, NOTHING_WRITTEN]))
        return
    source = plan_source(flags, text)
    plan = TaskPlan(vocabulary=flags.vocab, targets=targets_for(parts=source.parts), engine=flags.engine)
    previews = preview(plan, source.parts)
    if source.stage is not None:
        print("\n".join(source.stage.plan.lines(source.files, flags.text)))
    show_previews(previews)


def check_text(directory: str, punkt_tables: str | None, targets: tuple[Target, ...]) -> None:
    """What would end a run from a dump after hours, found before it starts."""
    for target in targets:
        dataset = target.dataset
        if storage.join(directory, "").startswith(storage.join(dataset.directory, "")):
            raise SettingsError(
                f"--text {directory}: lies within the dataset {dataset.directory}; choose another"
            )
        dataset.refuse_others(inputs_known=False)
    find_punkt_tables(punkt_tables)  # fetched once, before the workers look for them


def extract_dump(flags: argparse.Namespace, beam_words: list[str]) -> Figures:
    """Extract the dump, a pipeline of its own: how its files become parts is planned from their sizes.

    The input is the directory of the articles from then on; what was counted.
    """
    pipeline = make_pipeline(beam_words, flags)
    import apache_beam as beam

    from beam_pipelines.stages.extraction import ExtractArticles

    articles = storage.join(flags.text, "extracted")
    stage = ExtractArticles(articles, given_extract_settings(flags), flags.extract_workers)
    _ = (
        pipeline
        | "list dump" >> beam.Create(flags.input, reshuffle=False)
        | "extract articles" >> beam.ParDo(stage)
    )
    flags.input = [articles]
    return run_pipeline(pipeline)


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """The parts to make shards of; ``stage`` makes them of ``files``, or is None where they are there.

    counts: of an earlier run of the text stage, whose finished directory is used.
    """

    parts: list[str]
    files: list[str]
    stage: TextStage | None
    counts: SegmentCounts | None = None


def plan_source(flags: argparse.Namespace, text: SegmentSettings | None) -> Source:
    """The parts that are there, or those to be made of the extracted files that are."""
    if text is None:
        return Source(parts=find_parts(flags.input), files=[], stage=None)
    files = find_extracted_files(flags.input)
    stage = plan_text_stage(files, flags.text, text, flags.engine, flags.punkt_tables)
    if (finished := finished_text(stage, files)) is not None:
        return Source(parts=stage.parts, files=files, stage=None, counts=finished.counts)
    return Source(parts=stage.parts, files=files, stage=stage)


def add_stages(pipeline: Any, source: Source, targets: tuple[Target, ...], flags: argparse.Namespace) -> None:
    """From parts, or from articles, to finished datasets."""
    # Imported here, as in runners: loading Beam takes seconds that --help and wrong usage can do without.
    import apache_beam as beam

    from beam_pipelines.stages.articles import make_parts
    from beam_pipelines.stages.shards import MakeShards, WriteManifests
    from beam_pipelines.stages.shuffled import MakeShuffledShards, Shuffle

    if source.stage is None:
        parts = pipeline | "list parts" >> beam.Create(source.parts, reshuffle=False)
        cited = find_sources(source.parts)
        sources = pipeline | "list sources" >> beam.Create([cited], reshuffle=False)
    else:
        files = pipeline | "list files" >> beam.Create(list(enumerate(source.files)), reshuffle=False)
        parts, sources = files | "make parts" >> make_parts(source.stage)
    plan = TaskPlan(
        vocabulary=flags.vocab, targets=targets, engine=flags.engine, skip_bad=flags.skip_bad_inputs
    )
    if flags.num_shards is None:
        make_shards = MakeShards(plan)
    else:
        shuffle = Shuffle(shards=flags.num_shards, tasks=plan, room=parcel_room(targets))
        make_shards = MakeShuffledShards(shuffle)
    entries = parts | "make shards" >> make_shards
    _ = (entries, sources) | "write manifests" >> WriteManifests(targets, flags.vocab)


def parcel_room(targets: tuple[Target, ...]) -> ParcelRoom:
    """Where documents wait between the stages of a global shuffle: workers who share the output share it."""
    return ParcelRoom.in_directory(targets[0].dataset.unfinished)


def make_datasets(pipeline: Any, source: Source, targets: tuple[Target, ...]) -> Figures:
    """Run the pipeline on directories made ready, and clear up behind it; what was counted."""
    if source.stage is not None:
        source.stage.text.commit.claim()
        source.stage.room.clear()  # of an earlier run that was killed
    for target in targets:
        target.dataset.begin()
    parcel_room(targets).clear()
    try:
        if runs_here(pipeline):
            shards = (targets[0].dataset.plan.num_shards or len(source.parts)) * len(targets)
            with watching([target.dataset for target in targets], shards):
                figures = run_pipeline(pipeline)
        else:
            figures = run_pipeline(pipeline)
    except BaseException as error:
        if runs_here(pipeline):
            clear_away(source, targets)
        elif isinstance(error, KeyboardInterrupt):
            print(f"{PROGRAM}: the job goes on where it runs; stop it there", file=sys.stderr)
        raise
    if source.stage is not None:
        source.stage.text.commit.release()
    return figures


def run_pipeline(pipeline: Any) -> Figures:
    """What was counted, when all is done."""
    try:
        result = pipeline.run()
        result.wait_until_finish()
    except Exception as error:
        raise clear_error(error) from None
    return counted(result)


def clear_away(source: Source, targets: tuple[Target, ...]) -> None:
    """Remove files that a worker process was writing when it was stopped."""
    if source.stage is not None:
        source.stage.clear_away()
    parcel_room(targets).clear()
    for target in targets:
        target.dataset.give_up()


if __name__ == "__main__":
    sys.exit(main())
