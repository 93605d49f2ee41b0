"""Reading of records by ``segment``: it recognises records, checks their settings, and writes their text."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from bertdata._native import Engine
from bertdata.config.settings import convert_to_field_types
from bertdata.errors import BertDataError, DatasetError, SettingsError
from bertdata.io import storage
from bertdata.io.changed_inputs import make_changed_warnings
from bertdata.io.listing import list_inputs
from bertdata.io.patterns import expand_patterns
from bertdata.sources.find import find_files
from bertdata.sources.kinds import ARTICLES, BLOCKS, TEXT
from bertdata.sources.recognise import has_article_start, read_beginning, recognise_kind
from bertdata.sources.settings import RecordSettings
from bertdata.steps.progress import OnProgress, StepProgress, add_warnings_first
from bertdata.text.abbreviations import read_abbreviations
from bertdata.text.directory import TextDirectory, count_warnings, read_input_md5s, refuse_text_inputs
from bertdata.text.escaped_articles import find_escape_warnings
from bertdata.text.languages import list_unsplit_notes
from bertdata.text.load_splitter import fetch_tables, make_splitter_loader
from bertdata.text.part_settings import PartSettings
from bertdata.text.reading import has_extracted_name
from bertdata.text.record_plan import RecordPlan, plan_records
from bertdata.text.segment_records import segment_records
from bertdata.text.selection.settings import SelectionSettings, find_evaluation_files
from bertdata.text.settings import SegmentCounts, SegmentSettings

STAGE = "segmenting"
HASHING = "looking for duplicates"

_OF_RECORDS = tuple(item.name for item in fields(RecordSettings))
_OF_SELECTION = tuple(item.name for item in fields(SelectionSettings))
RECORD_SETTINGS = ("part_size", "sentences", *_OF_RECORDS, *_OF_SELECTION)
"""Names of settings that only apply to records."""

SHARED_SETTINGS = ("punkt", "language", "abbreviations", "escaped_articles")
ARTICLE_SETTINGS = tuple(item.name for item in fields(SegmentSettings) if item.name not in SHARED_SETTINGS)
"""Names of settings that only apply to articles."""


def reads_records(
    sources: Sequence[str], kind: str | None, given: Mapping[str, Any], books: Sequence[str]
) -> bool:
    """Return True if the sources are to be read as records, and not as articles or plain text.

    If the user named a kind, it decides. Otherwise settings decide that only apply to records or only to
    articles. If there are none, the first bytes of the first file decide. Raises SettingsError if settings of
    records and of articles are mixed.

    given: the settings that are not None.
    """
    own = [name for name in RECORD_SETTINGS if name in given]
    others = [name for name in ARTICLE_SETTINGS if name in given]
    if kind in (ARTICLES, TEXT) and not own:
        return False
    if kind is None and not own and (others or books or _find_first_kind(sources) == ARTICLES):
        return False
    check_record_settings(given)
    _refuse_settings(["books"] if books else [], "articles; give books as a source: --input-kind text")
    return True


def check_record_settings(given: Mapping[str, Any]) -> None:
    """Raise SettingsError if a setting only applies to articles."""
    others = [name for name in ARTICLE_SETTINGS if name in given]
    _refuse_settings(others, "articles and books; parts of records have --part-size, --sentences")


def _refuse_settings(names: Sequence[str], reason: str) -> None:
    """Raise SettingsError if any of these settings is set. The message names the first of them.

    reason: kind of input for which the settings are meant.
    """
    if names:
        raise SettingsError(f"--{names[0].replace('_', '-')} goes with {reason}")


def find_text_kind(sources: Sequence[str]) -> str:
    """Return ``articles`` or ``text``, according to the first file, for sources that are not records."""
    return TEXT if _find_first_kind(sources) == BLOCKS else ARTICLES


def _find_first_kind(sources: Sequence[str]) -> str | None:
    """Return the kind of the first file that is not empty, or None if the kind is not known.

    A file holds articles if its name or one of its lines looks like WikiExtractor's. If the kind is not
    known, the caller reads the file as records, and fails with an error that lists the kinds. Other errors in
    the file are also reported only when the caller reads it.
    """
    try:
        for path in expand_patterns(list(sources)):
            files = [path]
            if storage.is_directory(path):
                if any(map(has_extracted_name, list_inputs(path).names)):
                    return ARTICLES
                files = find_files([path], None).files
            for file in files:
                begin = read_beginning(file)
                if not begin.is_empty:
                    is_named = has_extracted_name(storage.get_base_name(file))
                    return ARTICLES if is_named or has_article_start(begin) else recognise_kind(begin)
    # This is a directory that Hugging Face's datasets saved, and it is damaged. The caller reads it as
    # records, and then reports the damage.
    except DatasetError:
        raise
    except BertDataError:
        pass
    return None


def make_part_settings(given: Mapping[str, Any]) -> PartSettings:
    """Return the settings for reading records as an object.

    given: values of the settings by name. ``abbreviations`` and ``exclude`` are paths of files.
    """
    nested = (*_OF_RECORDS, *_OF_SELECTION)
    values = convert_to_field_types(PartSettings, {n: value for n, value in given.items() if n not in nested})
    if (path := values.get("abbreviations")) is not None:
        values["abbreviations"] = read_abbreviations(path)
    selection = convert_to_field_types(SelectionSettings, {n: given[n] for n in _OF_SELECTION if n in given})
    if (paths := selection.get("exclude")) is not None:
        selection["exclude"] = find_evaluation_files(paths)
    records = convert_to_field_types(RecordSettings, {n: given[n] for n in _OF_RECORDS if n in given})
    return PartSettings(**values, records=RecordSettings(**records), selection=SelectionSettings(**selection))


def run_records(
    sources: Sequence[str],
    output: str,
    kind: str | None,
    settings: PartSettings,
    *,
    engine: Engine | None,
    punkt_tables: str | None,
    workers: int,
    progress: OnProgress,
) -> SegmentCounts:
    """Write the text of the sources' records into ``output`` as parts (files with a sentence per line)."""
    plan = plan_record_parts(sources, output, kind, settings, punkt_tables)
    progress = add_warnings_first(warn_of_escaped_markup(plan), progress)
    sizes = storage.map_paths(plan.files, storage.read_size)
    progress(StepProgress(stage=STAGE, done=0, total=sum(sizes), warnings=plan.notes))
    unsplit: dict[str, int] = {}
    before = read_input_md5s(output)
    counts = segment_records(
        plan,
        output,
        make_splitter_loader(plan.settings, engine, punkt_tables),
        workers=workers,
        engine=engine,
        progress=_PieceProgress(STAGE, sizes, progress),
        hashing=_PieceProgress(HASHING, sizes, progress),
        on_unsplit=unsplit.update,
    )
    total = sum(sizes)
    empty = f", {plan.empty} of them empty" if plan.empty else ""
    finished = f"segmented {len(sizes)} files{empty}"
    warnings = (
        *make_changed_warnings(output, before, read_input_md5s(output)),
        *count_warnings(output, counts),
        *list_unsplit_notes(unsplit),
    )
    progress(StepProgress(stage=STAGE, done=total, total=total, finished=finished, warnings=warnings))
    return counts


class _PieceProgress:
    """Progress of a pass over all pieces of the files, in bytes."""

    def __init__(self, stage: str, sizes: Sequence[int], progress: OnProgress) -> None:
        self._stage = stage
        self._left = list(sizes)
        self._total = sum(sizes)
        self._progress = progress

    def __call__(self, file: int, size: int) -> None:
        """Report that a piece (a group of records) of a file is done.

        file: number of the file.
        size: size of the piece in bytes. For a compressed file, this may be the larger size of the unpacked
            text. So the number of bytes left of a file is kept from falling below 0.
        """
        self._left[file] = max(0, self._left[file] - size)
        done = self._total - sum(self._left)
        self._progress(StepProgress(stage=self._stage, done=done, total=self._total))


def preview_records(
    sources: Sequence[str], output: str, kind: str | None, settings: PartSettings, punkt_tables: str | None
) -> list[str]:
    """Return lines for the user on what run_records would read and write, without writing anything.

    Errors that run_records would find before it reads the text are raised here too.
    """
    plan = plan_record_parts(sources, output, kind, settings, punkt_tables)
    TextDirectory(output, plan).commit.refuse_others()
    return [*plan.notes, *plan.lines(output)]


def warn_of_escaped_markup(plan: RecordPlan) -> tuple[str, ...]:
    """Return a warning for each file to be read whose text contains escaped markup."""
    return tuple(find_escape_warnings(plan.files, plan.kinds, plan.settings.escaped_articles))


def plan_record_parts(
    sources: Sequence[str], output: str, kind: str | None, settings: PartSettings, punkt_tables: str | None
) -> RecordPlan:
    """Return the plan of the text parts (files with one sentence per line) to write into ``output``.

    If Punkt's tables are missing, they are downloaded here, so that workers need not download them at the
    same time. Raises UsageError if a source does not exist, or if the output directory is also an input.
    """
    refuse_text_inputs(output, [*sources, *(str(file.path) for file in settings.selection.exclude)])
    fetch_tables(settings, punkt_tables)
    plan = plan_records(sources, kind, settings)
    # plan.files also has files behind links in a directory, which the sources do not name
    refuse_text_inputs(output, plan.files)
    return plan
