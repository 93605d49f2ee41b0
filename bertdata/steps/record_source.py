"""The half of ``segment`` that reads records: its choice, its settings, its run."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from bertdata._native import Engine
from bertdata.config.settings import typed_values
from bertdata.errors import BertDataError, SettingsError
from bertdata.io import storage
from bertdata.sources.find import find_files
from bertdata.sources.kinds import ARTICLES, TEXT, recognise
from bertdata.sources.settings import RecordSettings
from bertdata.steps.progress import OnProgress, StepProgress, telling_first
from bertdata.text.abbreviations import read_abbreviations
from bertdata.text.directory import TextDirectory
from bertdata.text.escaped_articles import escape_warnings
from bertdata.text.load_splitter import find_tables_of, load_splitter_of
from bertdata.text.part_settings import PartSettings
from bertdata.text.reading import is_extracted
from bertdata.text.record_plan import RecordPlan, plan_records
from bertdata.text.run_warnings import count_warnings
from bertdata.text.segment_records import segment_records
from bertdata.text.selection.settings import SelectionSettings, evaluation_files
from bertdata.text.settings import SegmentCounts, SegmentSettings

STAGE = "segmenting"
HASHING = "looking for duplicates"

_OF_RECORDS = tuple(item.name for item in fields(RecordSettings))
_OF_SELECTION = tuple(item.name for item in fields(SelectionSettings))
RECORD_SETTINGS = ("part_size", "sentences", *_OF_RECORDS, *_OF_SELECTION)
"""Settings that parts of records alone have."""

SHARED_SETTINGS = ("punkt", "language", "abbreviations", "escaped_articles")
ARTICLE_SETTINGS = tuple(item.name for item in fields(SegmentSettings) if item.name not in SHARED_SETTINGS)
"""Settings that the parts of articles alone have."""


def reads_records(
    sources: Sequence[str], kind: str | None, given: Mapping[str, Any], books: Sequence[str]
) -> bool:
    """True where the sources are read as records: by their kind, by a setting, by the first file's bytes.

    given: the settings that are not None. SettingsError for settings of records beside those of articles.
    """
    own = [name for name in RECORD_SETTINGS if name in given]
    others = [name for name in ARTICLE_SETTINGS if name in given]
    if kind in (ARTICLES, TEXT) and not own:
        return False
    if kind is None and not own and (others or books or not _begins_with_records(sources)):
        return False
    check_record_settings(given)
    _refuse(["books"] if books else [], "articles; give books as a source: --input-kind text")
    return True


def check_record_settings(given: Mapping[str, Any]) -> None:
    """SettingsError for a setting of articles alone."""
    others = [name for name in ARTICLE_SETTINGS if name in given]
    _refuse(others, "articles and books; parts of records have --part-size, --sentences")


def _refuse(names: Sequence[str], reason: str) -> None:
    if names:
        raise SettingsError(f"--{names[0].replace('_', '-')} goes with {reason}")


def _begins_with_records(sources: Sequence[str]) -> bool:
    """True where the bytes of the first file tell a kind of records. Errors are left to the one who reads."""
    try:
        for path in storage.expand(list(sources)):
            if not storage.is_directory(path):
                return recognise(path) not in (None, ARTICLES)
            if any(map(is_extracted, storage.list_files(path))):
                return False
            return recognise(find_files([path], None)[0]) is not None
    except BertDataError:
        pass
    return False


def part_settings(given: Mapping[str, Any]) -> PartSettings:
    """The settings, from values by field. Of abbreviations and exclude the paths of their files."""
    nested = (*_OF_RECORDS, *_OF_SELECTION)
    values = typed_values(PartSettings, {n: value for n, value in given.items() if n not in nested})
    if (path := values.get("abbreviations")) is not None:
        values["abbreviations"] = read_abbreviations(path)
    selection = typed_values(SelectionSettings, {n: given[n] for n in _OF_SELECTION if n in given})
    if (paths := selection.get("exclude")) is not None:
        selection["exclude"] = evaluation_files(paths)
    records = typed_values(RecordSettings, {n: given[n] for n in _OF_RECORDS if n in given})
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
    """Write the parts of the sources' records into ``output``."""
    plan = plan_record_parts(sources, kind, settings, punkt_tables)
    progress = telling_first(plan_warnings(plan), progress)
    sizes = storage.each(plan.files, storage.size)
    counts = segment_records(
        plan,
        output,
        load_splitter_of(plan.settings, engine, punkt_tables),
        workers=workers,
        engine=engine,
        progress=_PieceProgress(STAGE, sizes, progress),
        hashing=_PieceProgress(HASHING, sizes, progress),
    )
    total = sum(sizes)
    finished, warnings = f"segmented {len(sizes)} files", tuple(count_warnings(output, counts))
    progress(StepProgress(stage=STAGE, done=total, total=total, finished=finished, warnings=warnings))
    return counts


class _PieceProgress:
    """The progress of a pass over all pieces, in bytes of the files."""

    def __init__(self, stage: str, sizes: Sequence[int], progress: OnProgress) -> None:
        self._stage = stage
        self._left = list(sizes)
        self._total = sum(sizes)
        self._progress = progress

    def __call__(self, file: int, size: int) -> None:
        """A piece is done. Of a compressed file size may be in bytes of its text."""
        self._left[file] = max(0, self._left[file] - size)
        done = self._total - sum(self._left)
        self._progress(StepProgress(stage=self._stage, done=done, total=self._total))


def preview_records(
    sources: Sequence[str], output: str, kind: str | None, settings: PartSettings, punkt_tables: str | None
) -> list[str]:
    """The lines on what would be read and written. Errors as from run_records."""
    plan = plan_record_parts(sources, kind, settings, punkt_tables)
    TextDirectory(output, plan).commit.refuse_others()
    return plan.lines(output)


def plan_warnings(plan: RecordPlan) -> tuple[str, ...]:
    """Return warnings about the text of the plan's files."""
    return tuple(escape_warnings(plan.files, plan.kinds, plan.settings.escaped_articles))


def plan_record_parts(
    sources: Sequence[str], kind: str | None, settings: PartSettings, punkt_tables: str | None
) -> RecordPlan:
    if settings.sentences == "punkt":
        find_tables_of(settings.language, punkt_tables)
    return plan_records(sources, kind, settings)
