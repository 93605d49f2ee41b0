"""The half of ``segment`` that reads records: its choice, its settings, its run."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from bertdata._native import Engine
from bertdata.config.settings import typed_values
from bertdata.errors import BertDataError, DatasetError, SettingsError
from bertdata.io import storage
from bertdata.io.listing import list_inputs
from bertdata.io.patterns import expand
from bertdata.sources.find import find_files
from bertdata.sources.kinds import ARTICLES, BLOCKS, TEXT
from bertdata.sources.recognise import holds_frame, kind_of, read_beginning
from bertdata.sources.settings import RecordSettings
from bertdata.steps.progress import OnProgress, StepProgress, telling_first
from bertdata.text.abbreviations import read_abbreviations
from bertdata.text.directory import TextDirectory, count_warnings, refuse_text_inputs
from bertdata.text.escaped_articles import escape_warnings
from bertdata.text.load_splitter import find_tables_of, load_splitter_of
from bertdata.text.part_settings import PartSettings
from bertdata.text.reading import is_extracted
from bertdata.text.record_plan import RecordPlan, plan_records
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
    if kind is None and not own and (others or books or _first_kind(sources) == ARTICLES):
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


def text_kind(sources: Sequence[str]) -> str:
    """Return the kind of sources that no flag names and that are no records: articles, or plain text."""
    return TEXT if _first_kind(sources) == BLOCKS else ARTICLES


def _first_kind(sources: Sequence[str]) -> str | None:
    """The kind of the first file that holds something. Errors are left to the one who reads.

    None where no kind is known: then it is read as records, whose error names the kinds. A file that is named
    as WikiExtractor names its files, or holds one of its lines, is one of articles.
    """
    try:
        for path in expand(list(sources)):
            files = [path]
            if storage.is_directory(path):
                if any(map(is_extracted, list_inputs(path).names)):
                    return ARTICLES
                files = find_files([path], None).files
            for file in files:
                begin = read_beginning(file)
                if not begin.is_empty:
                    is_named = is_extracted(storage.base_name(file))
                    return ARTICLES if is_named or holds_frame(begin) else kind_of(begin)
    except DatasetError:  # a directory that datasets saved, but not one that can be read
        raise
    except BertDataError:
        pass
    return None


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
    plan = plan_record_parts(sources, output, kind, settings, punkt_tables)
    progress = telling_first(plan_warnings(plan), progress)
    sizes = storage.each(plan.files, storage.size)
    progress(StepProgress(stage=STAGE, done=0, total=sum(sizes), warnings=plan.notes))
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
    empty = f", {plan.empty} of them empty" if plan.empty else ""
    finished, warnings = f"segmented {len(sizes)} files{empty}", tuple(count_warnings(output, counts))
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
    plan = plan_record_parts(sources, output, kind, settings, punkt_tables)
    TextDirectory(output, plan).commit.refuse_others()
    return [*plan.notes, *plan.lines(output)]


def plan_warnings(plan: RecordPlan) -> tuple[str, ...]:
    """Return warnings about the text of the plan's files."""
    return tuple(escape_warnings(plan.files, plan.kinds, plan.settings.escaped_articles))


def plan_record_parts(
    sources: Sequence[str], output: str, kind: str | None, settings: PartSettings, punkt_tables: str | None
) -> RecordPlan:
    """Plan the parts that are to be written into ``output``.

    Errors as from plan_records and refuse_text_inputs. The Punkt tables are fetched once, before the workers
    look for them.
    """
    refuse_text_inputs(output, [*sources, *(str(file.path) for file in settings.selection.exclude)])
    if settings.sentences == "punkt":
        find_tables_of(settings.language, punkt_tables)
    plan = plan_records(sources, kind, settings)
    refuse_text_inputs(output, plan.files)  # files behind links of a directory too
    return plan
