"""The step that converts articles, plain text or records to text parts, that is, files with one sentence per
line.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from bertdata.config.settings import convert_to_field_types
from bertdata.errors import SettingsError
from bertdata.io import storage
from bertdata.io.changed_inputs import make_changed_warnings
from bertdata.steps.dataset_file import DatasetFile
from bertdata.steps.keywords import accept_keywords
from bertdata.steps.memory_sources import open_records
from bertdata.steps.progress import OnProgress, StepProgress, add_warnings_first, choose_progress
from bertdata.steps.record_source import (
    STAGE,
    find_text_kind,
    make_part_settings,
    preview_records,
    reads_records,
    run_records,
)
from bertdata.steps.segment_request import INPUT_KINDS, SegmentRequest
from bertdata.steps.values import convert_optional_path, convert_path, count_workers, list_paths
from bertdata.text import segment as text
from bertdata.text.abbreviations import read_abbreviations
from bertdata.text.directory import TextDirectory, count_warnings, read_input_md5s, refuse_text_inputs
from bertdata.text.escaped_articles import find_escape_warnings
from bertdata.text.input_kinds import check_beginnings
from bertdata.text.load_splitter import fetch_tables, make_splitter_loader
from bertdata.text.part_settings import PartSettings
from bertdata.text.settings import SegmentCounts, SegmentSettings
from bertdata.text.text_inputs import TextInputs, find_inputs
from bertdata.text.text_plan import plan_text


@accept_keywords(SegmentRequest)
def segment(request: SegmentRequest) -> SegmentCounts:
    """Write the text parts of the sources into ``output``, as ``bertdata segment`` does.

    Text parts are files with one sentence per line. Parts that an earlier run finished are kept.

    The sources may be extracted articles, plain-text files with one document each (input_kind "text"), or
    files of records (blocks, jsonl, json, csv, tsv, parquet, arrow). They may be compressed, and they may be
    in directories. If input_kind is None, the bytes of the first file show what the sources are. If they show
    no format and the file's name ends in .txt, the sources are read as blocks, that is, documents between
    blank lines. books are plain-text files that are read before the sources.

    The sources may also be records in memory: a DataFrame, a dataset of Hugging Face, an iterable of dicts,
    or an iterable of texts that is wrapped as ``bertdata.Records``.

    A setting that is None is taken from the TOML file ``config`` (docs/commands.md). If the file does not
    have it, it has its default. All settings are described in SegmentSettings, and for records in
    PartSettings, RecordSettings and SelectionSettings. abbreviations and exclude are paths of files.
    punkt_tables is a directory or URL of NLTK's punkt_tab tables. keep_languages may also be a list of
    languages, and eval_share a number: 0.05 is "5%".
    """
    with open_records(request, "sources") as opened, apply_text_settings_file(opened) as given:
        return make_text(given, choose_progress(request.progress))


@contextmanager
def apply_text_settings_file(request: SegmentRequest) -> Iterator[SegmentRequest]:
    """Yield the request, completed by the table ``text`` of its settings file.

    If the ``with`` block raises a SettingsError about a setting of the file, the error names the line of this
    setting.
    """
    with open_text_settings(convert_optional_path(request.config), request.settings) as settings:
        yield replace(request, **settings)


def choose_text_settings(request: SegmentRequest) -> SegmentSettings | PartSettings:
    """Return the settings of the text parts: PartSettings for records, SegmentSettings for other sources.

    Does not read the request's settings file. Raises SettingsError if a setting is wrong or the output
    overlaps with an input.
    """
    sources, books, given = (
        list_paths(request.sources),
        list_paths(request.books or ()),
        request.settings,
    )
    inputs = [*sources, *books, *given.get("exclude", ()), given.get("abbreviations")]
    refuse_text_inputs(convert_path(request.output), inputs)
    if request.input_kind is not None and request.input_kind not in INPUT_KINDS:
        raise SettingsError(f"input_kind is {request.input_kind!r}, expected one of {', '.join(INPUT_KINDS)}")
    is_of_records = reads_records(sources, request.input_kind, given, books)
    return make_part_settings(given) if is_of_records else make_segment_settings(given)


def make_text(request: SegmentRequest, progress: OnProgress) -> SegmentCounts:
    """Write the text parts of a request to which its settings file has already been applied."""
    output, tables = convert_path(request.output), convert_optional_path(request.punkt_tables)
    workers, engine = count_workers(request.workers), request.engine
    settings = choose_text_settings(request)
    if isinstance(settings, PartSettings):
        return run_records(
            list_paths(request.sources),
            output,
            request.input_kind,
            settings,
            engine=engine,
            punkt_tables=tables,
            workers=workers,
            progress=progress,
        )
    inputs = find_text(request, settings)
    files, kinds = inputs.files, inputs.kinds
    on_progress = add_warnings_first(
        tuple(find_escape_warnings(files, kinds, settings.escaped_articles)), progress
    )
    sizes = storage.map_paths(files, storage.read_size)
    finished, done, total = iter(files), 0, sum(sizes)
    on_progress(StepProgress(stage=STAGE, done=0, total=total, warnings=inputs.notes))

    def report_file(size: int) -> None:
        nonlocal done
        done += size
        on_progress(StepProgress(stage=STAGE, done=done, total=total, finished=f"segmented {next(finished)}"))

    before = read_input_md5s(output)
    counts = text.segment_files(
        files,
        output,
        settings,
        make_splitter_loader(settings, engine, tables),
        kinds=kinds,
        workers=workers,
        progress=report_file,
    )
    warnings = (
        *make_changed_warnings(output, before, read_input_md5s(output)),
        *count_warnings(output, counts),
    )
    on_progress(StepProgress(stage=STAGE, done=total, total=total, warnings=warnings))
    return counts


@contextmanager
def open_text_settings(config: str | None, given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the given settings by field, completed by the table ``text`` of the file ``config``.

    If the ``with`` block raises a SettingsError about a setting of the file, the error names the line of this
    setting.
    """
    if config is None:
        yield dict(given)
        return
    file = DatasetFile(config)
    with file.name_file_in_errors(given, of_text=True):
        yield {**file.text, **given}


def make_segment_settings(given: Mapping[str, Any]) -> SegmentSettings:
    """Return the settings of segmentation as an object.

    given: values of the settings by name. ``abbreviations`` is the path of a file, which is read here.
    """
    values = convert_to_field_types(SegmentSettings, dict(given))
    if (path := values.get("abbreviations")) is not None:
        values["abbreviations"] = read_abbreviations(path)
    return SegmentSettings(**values)


def find_text(request: SegmentRequest, settings: SegmentSettings) -> TextInputs:
    """Return the files to read and the kind of each file (articles or plain text).

    If Punkt's tables are missing, they are downloaded here, so that workers need not download them at the
    same time. Raises UsageError if a source does not exist, or if the output directory is also an input.
    """
    sources, output, books = (
        list_paths(request.sources),
        convert_path(request.output),
        list_paths(request.books or ()),
    )
    refuse_text_inputs(output, [*sources, *books])
    found = find_inputs(sources, request.input_kind or find_text_kind(sources), books)
    # found.files also has files behind links in a directory, which the sources do not name
    refuse_text_inputs(output, found.files)
    fetch_tables(settings, convert_optional_path(request.punkt_tables))
    return found


def preview_text(request: SegmentRequest) -> list[str]:
    """Return lines for the user on what make_text would read and write, without writing anything."""
    output, settings = convert_path(request.output), choose_text_settings(request)
    if isinstance(settings, PartSettings):
        tables = convert_optional_path(request.punkt_tables)
        return preview_records(list_paths(request.sources), output, request.input_kind, settings, tables)
    inputs = find_text(request, settings)
    plan = plan_text(inputs.files, settings, inputs.kinds)
    TextDirectory(output, plan).commit.refuse_others()
    check_beginnings(inputs.files, inputs.kinds)
    return [*inputs.notes, *plan.lines(inputs.files, output)]
