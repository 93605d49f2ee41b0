"""Extracted articles, or plain text, to parts with one sentence a line."""

from collections.abc import Mapping, Sequence
from typing import Any

from bertdata._native import Engine
from bertdata.build.dataset_file import DatasetFile
from bertdata.config.settings import typed_values
from bertdata.io import storage
from bertdata.steps.progress import OnProgress, StepProgress, silent
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
from bertdata.text.directory import TextDirectory
from bertdata.text.input_kinds import ARTICLES, check_beginnings, find_inputs
from bertdata.text.load_splitter import find_tables_of, load_splitter_of
from bertdata.text.plan import plan_text
from bertdata.text.settings import SegmentCounts, SegmentSettings

STAGE = "segmenting"


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
    punkt_tables: AnyPath | None = None,
    config: AnyPath | None = None,
    workers: int | None = None,
    engine: Engine | None = None,
    progress: OnProgress | None = None,
) -> SegmentCounts:
    """Write the parts of the files into ``output``, as ``bertdata segment`` does.

    sources: extracted files, or directories of them; with input_kind "text", plain-text files, one
    document each, or directories of them. books: such text files beside the sources, read before them. A
    setting that is None is that of config, a TOML file (docs/commands.md), else has its default:
    SegmentSettings says which and what each means; abbreviations: the path of their file. punkt_tables:
    directory or URL of NLTK's punkt_tab tables of the language. What an earlier run finished is kept.
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
    }
    given = {name: value for name, value in given.items() if value is not None}
    settings = settings_of(given, optional_path(config))
    tables = optional_path(punkt_tables)
    given_books = [] if books is None else paths_of(books)
    files, kinds = find_text(
        paths_of(sources),
        ARTICLES if input_kind is None else input_kind,
        given_books,
        settings.language,
        tables,
    )
    sizes, tell = storage.each(files, storage.size), progress or silent
    finished, done, total = iter(files), 0, sum(sizes)
    tell(StepProgress(stage=STAGE, done=0, total=total))

    def show(size: int) -> None:
        nonlocal done
        done += size
        tell(StepProgress(stage=STAGE, done=done, total=total, finished=f"segmented {next(finished)}"))

    return text.segment(
        files,
        path_of(output),
        settings,
        load_splitter_of(settings, engine, tables),
        kinds=kinds,
        workers=processes,
        progress=show,
    )


def settings_of(given: Mapping[str, Any], config: str | None = None) -> SegmentSettings:
    """The settings, from values by field, those that are not given by the file config.

    Of abbreviations the path of their file.
    """
    if config is None:
        return _made(given)
    file = DatasetFile(config)
    with file.naming(given):
        return _made({**file.text, **given})


def _made(given: Mapping[str, Any]) -> SegmentSettings:
    values = typed_values(SegmentSettings, dict(given))
    if (path := values.get("abbreviations")) is not None:
        values["abbreviations"] = read_abbreviations(path)
    return SegmentSettings(**values)


def find_text(
    sources: list[str], kind: str, books: list[str], language: str, punkt_tables: str | None
) -> tuple[list[str], list[str]]:
    """The files and their kinds. The Punkt tables are fetched once, before the workers look for them."""
    found = find_inputs(sources, kind, books)
    find_tables_of(language, punkt_tables)
    return found


def preview_segment(
    sources: list[str],
    output: str,
    settings: SegmentSettings,
    punkt_tables: str | None,
    *,
    input_kind: str = ARTICLES,
    books: Sequence[str] = (),
) -> list[str]:
    """The lines on what would be read and written. Errors as from segment."""
    files, kinds = find_text(sources, input_kind, list(books), settings.language, punkt_tables)
    plan = plan_text(files, settings, kinds)
    TextDirectory(output, plan).commit.refuse_others()
    check_beginnings(files, kinds)
    return plan.lines(files, output)
