"""The parts of ``create`` where it is given sources of records: made as ``segment`` makes them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from bertdata._native import Engine
from bertdata.errors import BertDataError, SettingsError
from bertdata.io import storage
from bertdata.io.file_kind import find_kind
from bertdata.io.manifest_file import MANIFEST_NAME
from bertdata.sources.find import find_files
from bertdata.sources.kinds import ARTICLES, CHOSEN_KINDS, HEAD_BYTES, recognise
from bertdata.steps.progress import OnProgress
from bertdata.steps.record_source import check_record_settings, part_settings, preview_records, run_records
from bertdata.steps.segment import settings_with
from bertdata.text.part_settings import PartSettings
from bertdata.text.record_plan import RecordPlan, plan_records

_BY_BYTES = ("jsonl", "parquet", "arrow")


def holds_records(paths: Sequence[str], given: Mapping[str, Any], skip_bad_inputs: bool) -> bool:
    """True where the paths are sources of records: by their settings, or by the first file's bytes.

    given: settings of ``segment`` that ``create`` takes too. skip_bad_inputs: leave out bad parts.
    A text that is read as a part without these settings is never taken for one.
    """
    if given or skip_bad_inputs:
        return bool(given)
    try:
        first = storage.expand(list(paths))[0]
        if storage.is_directory(first):
            if storage.exists(storage.join(first, MANIFEST_NAME)):
                return False
            first = find_files([first], None)[0]
        with storage.open_input(first) as file:
            head = file.read(HEAD_BYTES + 1)
        found = recognise(first)
    except BertDataError:
        return False
    is_text = find_kind(head[:HEAD_BYTES], first, whole=len(head) <= HEAD_BYTES) is None
    return found in (ARTICLES, "arrow") or (found in _BY_BYTES and not is_text)


def text_directory(output: str) -> str:
    """The directory of the parts, beside the dataset's."""
    return f"{output.rstrip('/')}.text"


def make_parts(
    paths: Sequence[str],
    output: str,
    given: Mapping[str, Any],
    *,
    config: str | None = None,
    workers: int,
    engine: Engine | None,
    progress: OnProgress,
) -> list[str]:
    """Make the parts of the sources, beside the dataset, and name their directory. Errors as from segment.

    config: a file of settings, whose table text counts under the given ones.
    """
    directory, kind = text_directory(output), _kind(given)
    with _settings(given, config) as settings:
        run_records(
            paths,
            directory,
            kind,
            settings,
            engine=engine,
            punkt_tables=None,
            workers=workers,
            progress=progress,
        )
    return [directory]


def preview_parts(
    paths: Sequence[str], output: str, given: Mapping[str, Any], config: str | None = None
) -> list[str]:
    """The lines on the parts that would be made."""
    with _settings(given, config) as settings:
        return preview_records(paths, text_directory(output), _kind(given), settings, None)


def plan_texts(paths: Sequence[str], given: Mapping[str, Any]) -> RecordPlan:
    """The plan by which the sources' texts are read where no parts are made of them."""
    with _settings({**given, "sentences": "none"}, None) as settings:
        return plan_records(paths, _kind(given), settings)


@contextmanager
def _settings(given: Mapping[str, Any], config: str | None) -> Iterator[PartSettings]:
    own = {name: value for name, value in given.items() if name != "input_kind"}
    with settings_with(config, own) as values:
        check_record_settings(values)
        yield part_settings(values)


def _kind(given: Mapping[str, Any]) -> str | None:
    kind: str | None = given.get("input_kind")
    if kind is not None and kind not in CHOSEN_KINDS:
        raise SettingsError(f"input_kind is {kind!r}, expected one of {', '.join(CHOSEN_KINDS)}")
    return kind
