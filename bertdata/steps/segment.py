"""The step that converts articles, plain text or records to text parts with one sentence per line."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from bertdata.config.settings import convert_values
from bertdata.io import storage
from bertdata.steps.dataset_file import DatasetFile
from bertdata.steps.keywords import keywords_of
from bertdata.steps.progress import OnProgress, StepProgress, add_warnings_first, ignore_progress
from bertdata.steps.record_source import (
    STAGE,
    find_text_kind,
    part_settings,
    preview_records,
    reads_records,
    run_records,
)
from bertdata.steps.segment_request import SegmentRequest
from bertdata.steps.values import optional_path, path_of, paths_of, workers_of
from bertdata.text import segment as text
from bertdata.text.abbreviations import read_abbreviations
from bertdata.text.directory import TextDirectory, count_warnings, refuse_text_inputs
from bertdata.text.escaped_articles import find_escape_warnings
from bertdata.text.input_kinds import check_beginnings
from bertdata.text.load_splitter import fetch_tables, make_splitter_loader
from bertdata.text.part_settings import PartSettings
from bertdata.text.settings import SegmentCounts, SegmentSettings
from bertdata.text.text_inputs import TextInputs, find_inputs
from bertdata.text.text_plan import plan_text


@keywords_of(SegmentRequest)
def segment(request: SegmentRequest) -> SegmentCounts:
    """Write the text parts of the sources into ``output``, as ``bertdata segment`` does.

    The sources may be extracted articles, plain-text files with one document each (input_kind "text"), or
    files of records (blocks, jsonl, json, csv, tsv, parquet, arrow), compressed or not. They may also be
    directories of these. With input_kind None, the bytes of the first file decide, and other .txt files are
    blocks. books are plain-text files that are read before the sources.

    A setting that is None comes from the TOML file ``config`` (docs/commands.md), else has its default.
    SegmentSettings describes all settings, and for records PartSettings, RecordSettings and SelectionSettings
    do. abbreviations and exclude take file paths. punkt_tables is a directory or URL of NLTK's punkt_tab
    tables.

    Parts that an earlier run finished are kept.
    """
    with with_text_of_file(request) as given:
        return make_text(given, request.progress or ignore_progress)


@contextmanager
def with_text_of_file(request: SegmentRequest) -> Iterator[SegmentRequest]:
    """Yield the request, completed by the table ``text`` of its settings file.

    A SettingsError in the block that concerns the file is raised with the file's line.
    """
    with open_text_settings(optional_path(request.config), request.settings) as settings:
        yield replace(request, **settings)


def choose_text_settings(request: SegmentRequest) -> SegmentSettings | PartSettings:
    """Return the settings of the parts: PartSettings for records, else SegmentSettings.

    Does not read the request's settings file. SettingsError if a setting is wrong or the output overlaps with
    an input.
    """
    sources, books, given = paths_of(request.sources), paths_of(request.books or ()), request.settings
    inputs = [*sources, *books, *given.get("exclude", ()), given.get("abbreviations")]
    refuse_text_inputs(path_of(request.output), inputs)
    is_of_records = reads_records(sources, request.input_kind, given, books)
    return part_settings(given) if is_of_records else settings_of(given)


def make_text(request: SegmentRequest, progress: OnProgress) -> SegmentCounts:
    """Write the parts of the request. Does not read its settings file."""
    output, tables = path_of(request.output), optional_path(request.punkt_tables)
    workers, engine = workers_of(request.workers), request.engine
    settings = choose_text_settings(request)
    if isinstance(settings, PartSettings):
        return run_records(
            paths_of(request.sources),
            output,
            request.input_kind,
            settings,
            engine=engine,
            punkt_tables=tables,
            workers=workers,
            progress=progress,
        )
    inputs = find_text(request, settings.language)
    files, kinds = inputs.files, inputs.kinds
    tell = add_warnings_first(tuple(find_escape_warnings(files, kinds, settings.escaped_articles)), progress)
    sizes = storage.map_paths(files, storage.read_size)
    finished, done, total = iter(files), 0, sum(sizes)
    tell(StepProgress(stage=STAGE, done=0, total=total, warnings=inputs.notes))

    def show(size: int) -> None:
        nonlocal done
        done += size
        tell(StepProgress(stage=STAGE, done=done, total=total, finished=f"segmented {next(finished)}"))

    counts = text.segment_files(
        files,
        output,
        settings,
        make_splitter_loader(settings, engine, tables),
        kinds=kinds,
        workers=workers,
        progress=show,
    )
    tell(StepProgress(stage=STAGE, done=total, total=total, warnings=tuple(count_warnings(output, counts))))
    return counts


@contextmanager
def open_text_settings(config: str | None, given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the given settings by field, completed by the table ``text`` of the file ``config``.

    A SettingsError in the block that concerns the file is raised with the file's line.
    """
    if config is None:
        yield dict(given)
        return
    file = DatasetFile(config)
    with file.naming(given, of_text=True):
        yield {**file.text, **given}


def settings_of(given: Mapping[str, Any]) -> SegmentSettings:
    """Return the settings as an object. given: values by field, with a file path for abbreviations."""
    values = convert_values(SegmentSettings, dict(given))
    if (path := values.get("abbreviations")) is not None:
        values["abbreviations"] = read_abbreviations(path)
    return SegmentSettings(**values)


def find_text(request: SegmentRequest, language: str) -> TextInputs:
    """Return the files to read and their kinds.

    Punkt's tables are downloaded here if needed, before several workers would try. Raises the errors of
    ``find_inputs``, and of ``refuse_text_inputs`` for the output.
    """
    sources, output, books = paths_of(request.sources), path_of(request.output), paths_of(request.books or ())
    refuse_text_inputs(output, [*sources, *books])
    found = find_inputs(sources, request.input_kind or find_text_kind(sources), books)
    refuse_text_inputs(output, found.files)  # includes files behind links in a directory
    fetch_tables(language, optional_path(request.punkt_tables))
    return found


def preview_text(request: SegmentRequest) -> list[str]:
    """Return lines on what would be read and written. Raises the errors of ``make_text``."""
    output, settings = path_of(request.output), choose_text_settings(request)
    if isinstance(settings, PartSettings):
        tables = optional_path(request.punkt_tables)
        return preview_records(paths_of(request.sources), output, request.input_kind, settings, tables)
    inputs = find_text(request, settings.language)
    plan = plan_text(inputs.files, settings, inputs.kinds)
    TextDirectory(output, plan).commit.refuse_others()
    check_beginnings(inputs.files, inputs.kinds)
    return [*inputs.notes, *plan.lines(inputs.files, output)]
