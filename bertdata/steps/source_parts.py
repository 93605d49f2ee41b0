"""The parts of ``create`` where it is given sources of records: made as ``segment`` makes them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from bertdata._native import Engine
from bertdata.errors import BertDataError, DatasetError, SettingsError
from bertdata.io import storage
from bertdata.io.file_kind import HEAD_BYTES, find_kind
from bertdata.io.manifest_file import MANIFEST_NAME
from bertdata.io.outputs import refuse_inputs
from bertdata.io.patterns import expand
from bertdata.sources.find import find_files
from bertdata.sources.kinds import ARTICLES, CHOSEN_KINDS
from bertdata.sources.recognise import recognise
from bertdata.steps.progress import OnProgress
from bertdata.steps.record_source import check_record_settings, part_settings, preview_records, run_records
from bertdata.steps.segment import settings_with
from bertdata.text.part_settings import PartSettings
from bertdata.text.record_plan import RecordPlan, plan_records

_BY_BYTES = ("jsonl", "json", "parquet", "arrow")


def holds_records(paths: Sequence[str], given: Mapping[str, Any], skip_bad_inputs: bool) -> bool:
    """True where the paths are sources of records: by their settings, or by the first file's bytes.

    given: settings of ``segment`` that ``create`` takes too. skip_bad_inputs: leave out bad parts.
    A text that is read as a part without these settings is never taken for one.
    """
    if given or skip_bad_inputs:
        return bool(given)
    try:
        first = expand(list(paths))[0]
        if storage.is_directory(first):
            if storage.exists(storage.join(first, MANIFEST_NAME)):
                return False
            first = find_files([first], None).files[0]
        with storage.open_input(first) as file:
            head = file.read(HEAD_BYTES + 1)
        found = recognise(first)
    except DatasetError:  # a directory that datasets saved, but not one that can be read
        raise
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
    _refuse_inputs(output, paths, given)
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
    """Return the lines on the parts that would be made. Errors as from make_parts."""
    _refuse_inputs(output, paths, given)
    with _settings(given, config) as settings:
        return preview_records(paths, text_directory(output), _kind(given), settings, None)


def plan_texts(paths: Sequence[str], given: Mapping[str, Any]) -> RecordPlan:
    """The plan by which the sources' texts are read where no parts are made of them."""
    with _settings({**given, "sentences": "none"}, None) as settings:
        return plan_records(paths, _kind(given), settings)


def _refuse_inputs(output: str, paths: Sequence[str], given: Mapping[str, Any]) -> None:
    """Raise SettingsError where the dataset, or the parts beside it, would lie over what they are made of."""
    for directory in (output, text_directory(output)):
        refuse_inputs(directory, [*paths, *given.get("exclude", ())])


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
