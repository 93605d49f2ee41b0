"""Extracted articles, plain text, or records of other files, to parts with one sentence a line."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from bertdata._native import Engine
from bertdata.build.dataset_file import DatasetFile
from bertdata.config.settings import typed_values
from bertdata.io import storage
from bertdata.steps.progress import OnProgress, StepProgress, silent, telling_first
from bertdata.steps.record_source import STAGE, part_settings, reads_records, run_records, text_kind
from bertdata.steps.values import (
    AnyPath,
    AnyPaths,
    check_engine,
    optional_path,
    path_of,
    paths_of,
    workers_of,
)
from bertdata.text import segment as text
from bertdata.text.abbreviations import read_abbreviations
from bertdata.text.directory import TextDirectory, count_warnings, refuse_text_inputs
from bertdata.text.escaped_articles import escape_warnings
from bertdata.text.input_kinds import check_beginnings
from bertdata.text.load_splitter import find_tables_of, load_splitter_of
from bertdata.text.settings import SegmentCounts, SegmentSettings
from bertdata.text.text_inputs import TextInputs, find_inputs
from bertdata.text.text_plan import plan_text


def segment(
    sources: AnyPaths,
    output: AnyPath,
    *,
    input_kind: str | None = None,
    books: AnyPaths | None = None,
    recipe: str | None = None,
    eval_articles: int | None = None,
    block_size: float | None = None,
    training_shards: int | None = None,
    test_shards: int | None = None,
    test_fraction: float | None = None,
    punkt: str | None = None,
    prefix: str | None = None,
    language: str | None = None,
    abbreviations: AnyPath | None = None,
    escaped_articles: str | None = None,
    part_size: float | None = None,
    sentences: str | None = None,
    text_field: str | None = None,
    id_field: str | None = None,
    language_field: str | None = None,
    max_record_bytes: int | None = None,
    skip_bad_records: bool | None = None,
    quoting: str | None = None,
    separator: str | None = None,
    no_heading: bool | None = None,
    as_is: bool | None = None,
    exclude: AnyPaths | None = None,
    exclude_ngram: int | None = None,
    dedup: str | None = None,
    eval_share: str | None = None,
    punkt_tables: AnyPath | None = None,
    config: AnyPath | None = None,
    workers: int | None = None,
    engine: Engine | None = None,
    progress: OnProgress | None = None,
) -> SegmentCounts:
    """Write the parts of the files into ``output``, as ``bertdata segment`` does.

    sources: extracted files, or directories of them; with input_kind "text", plain-text files, one
    document each, or directories of them; with any other kind, files of records (blocks, jsonl, json, csv,
    tsv, parquet, arrow), compressed or not. None: bytes tell, and .txt is plain text. books: text files
    beside the sources, read before them. A setting that is None is that of config, a TOML file
    (docs/commands.md), else has its default: SegmentSettings, and of records PartSettings, RecordSettings
    and SelectionSettings, say which and what each means; abbreviations, exclude: the paths of their files.
    punkt_tables: directory or URL of NLTK's punkt_tab tables of the language. What an earlier run finished
    is kept.
    """
    processes = workers_of(workers)
    check_engine(engine)
    given = {
        "recipe": recipe,
        "eval_articles": eval_articles,
        "block_size": block_size,
        "training_shards": training_shards,
        "test_shards": test_shards,
        "test_fraction": test_fraction,
        "punkt": punkt,
        "prefix": prefix,
        "language": language,
        "abbreviations": optional_path(abbreviations),
        "escaped_articles": escaped_articles,
        "part_size": part_size,
        "sentences": sentences,
        "text_field": text_field,
        "id_field": id_field,
        "language_field": language_field,
        "max_record_bytes": max_record_bytes,
        "skip_bad_records": skip_bad_records,
        "quoting": quoting,
        "separator": separator,
        "no_heading": no_heading,
        "as_is": as_is,
        "exclude": None if exclude is None else paths_of(exclude),
        "exclude_ngram": exclude_ngram,
        "dedup": dedup,
        "eval_share": eval_share,
    }
    given = {name: value for name, value in given.items() if value is not None}
    with settings_with(optional_path(config), given) as values:
        return _segment(
            paths_of(sources),
            path_of(output),
            values,
            kind=input_kind,
            books=[] if books is None else paths_of(books),
            tables=optional_path(punkt_tables),
            workers=processes,
            engine=engine,
            tell=progress or silent,
        )


def _segment(
    paths: list[str],
    output: str,
    given: dict[str, Any],
    *,
    kind: str | None,
    books: list[str],
    tables: str | None,
    workers: int,
    engine: Engine | None,
    tell: OnProgress,
) -> SegmentCounts:
    """Write the parts. given: the settings that differ from their defaults, by field."""
    refuse_text_inputs(output, [*paths, *books, *given.get("exclude", ()), given.get("abbreviations")])
    if reads_records(paths, kind, given, books):
        return run_records(
            paths,
            output,
            kind,
            part_settings(given),
            engine=engine,
            punkt_tables=tables,
            workers=workers,
            progress=tell,
        )
    settings = settings_of(given)
    inputs = find_text(paths, output, kind or text_kind(paths), books, settings.language, tables)
    files, kinds = inputs.files, inputs.kinds
    tell = telling_first(tuple(escape_warnings(files, kinds, settings.escaped_articles)), tell)
    sizes = storage.each(files, storage.size)
    finished, done, total = iter(files), 0, sum(sizes)
    tell(StepProgress(stage=STAGE, done=0, total=total, warnings=inputs.notes))

    def show(size: int) -> None:
        nonlocal done
        done += size
        tell(StepProgress(stage=STAGE, done=done, total=total, finished=f"segmented {next(finished)}"))

    counts = text.segment(
        files,
        output,
        settings,
        load_splitter_of(settings, engine, tables),
        kinds=kinds,
        workers=workers,
        progress=show,
    )
    tell(StepProgress(stage=STAGE, done=total, total=total, warnings=tuple(count_warnings(output, counts))))
    return counts


@contextmanager
def settings_with(config: str | None, given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The given settings by field, over those of the table text of the file config.

    A SettingsError inside names the file's line where it speaks of one.
    """
    if config is None:
        yield dict(given)
        return
    file = DatasetFile(config)
    with file.naming(given, of_text=True):
        yield {**file.text, **given}


def settings_of(given: Mapping[str, Any]) -> SegmentSettings:
    """The settings, from values by field. Of abbreviations the path of their file."""
    values = typed_values(SegmentSettings, dict(given))
    if (path := values.get("abbreviations")) is not None:
        values["abbreviations"] = read_abbreviations(path)
    return SegmentSettings(**values)


def find_text(
    sources: list[str], output: str, kind: str, books: list[str], language: str, punkt_tables: str | None
) -> TextInputs:
    """Find the files and their kinds. The Punkt tables are fetched once, before the workers look for them.

    Errors as from find_inputs, and as from refuse_text_inputs for the output.
    """
    refuse_text_inputs(output, [*sources, *books])
    found = find_inputs(sources, kind, books)
    refuse_text_inputs(output, found.files)  # files behind links of a directory too
    find_tables_of(language, punkt_tables)
    return found


def preview_segment(
    sources: list[str],
    output: str,
    settings: SegmentSettings,
    punkt_tables: str | None,
    *,
    input_kind: str | None = None,
    books: Sequence[str] = (),
) -> list[str]:
    """The lines on what would be read and written. Errors as from segment."""
    kind = input_kind or text_kind(sources)
    inputs = find_text(sources, output, kind, list(books), settings.language, punkt_tables)
    plan = plan_text(inputs.files, settings, inputs.kinds)
    TextDirectory(output, plan).commit.refuse_others()
    check_beginnings(inputs.files, inputs.kinds)
    return [*inputs.notes, *plan.lines(inputs.files, output)]
