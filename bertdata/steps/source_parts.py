"""The parts of ``create`` where it is given sources of records: made as ``segment`` makes them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from bertdata.errors import BertDataError, DatasetError, SettingsError
from bertdata.io import storage
from bertdata.io.file_kind import HEAD_BYTES, find_kind
from bertdata.io.manifest_file import MANIFEST_NAME
from bertdata.io.outputs import refuse_inputs
from bertdata.io.patterns import expand
from bertdata.sources.find import find_files
from bertdata.sources.kinds import ARTICLES, CHOSEN_KINDS
from bertdata.sources.recognise import recognise
from bertdata.steps.create_request import CreateRequest
from bertdata.steps.keywords import given_of
from bertdata.steps.progress import OnProgress
from bertdata.steps.record_source import check_record_settings, part_settings, preview_records, run_records
from bertdata.steps.segment import settings_with
from bertdata.steps.segment_request import GivenRecordSettings
from bertdata.steps.values import optional_path, path_of, paths_of, workers_of
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


def make_parts(request: CreateRequest, progress: OnProgress) -> list[str]:
    """Make the parts of the sources, beside the dataset, and name their directory. Errors as from segment.

    The table text of the request's file counts under the settings that are given.
    """
    directory = text_directory(path_of(request.output))
    with _settings_of(request) as settings:
        run_records(
            paths_of(request.parts),
            directory,
            request.input_kind,
            settings,
            engine=request.engine,
            punkt_tables=None,
            workers=workers_of(request.workers),
            progress=progress,
        )
    return [directory]


def preview_parts(request: CreateRequest) -> list[str]:
    """Return the lines on the parts that would be made. Errors as from make_parts."""
    directory = text_directory(path_of(request.output))
    with _settings_of(request) as settings:
        return preview_records(paths_of(request.parts), directory, request.input_kind, settings, None)


@contextmanager
def _settings_of(request: CreateRequest) -> Iterator[PartSettings]:
    """Yield the settings of the parts. SettingsError for what cannot be, and for an output over an input."""
    output, given = path_of(request.output), given_of(request, GivenRecordSettings)
    _check_kind(request.input_kind)
    for directory in (output, text_directory(output)):
        refuse_inputs(directory, [*paths_of(request.parts), *given.get("exclude", ())])
    with _settings(given, optional_path(request.config)) as settings:
        yield settings


def plan_texts(paths: Sequence[str], given: Mapping[str, Any]) -> RecordPlan:
    """The plan by which the sources' texts are read where no parts are made of them."""
    kind = given.get("input_kind")
    own = {name: value for name, value in given.items() if name != "input_kind"}
    with _settings({**own, "sentences": "none"}, None) as settings:
        _check_kind(kind)
        return plan_records(paths, kind, settings)


@contextmanager
def _settings(given: Mapping[str, Any], config: str | None) -> Iterator[PartSettings]:
    with settings_with(config, given) as values:
        check_record_settings(values)
        yield part_settings(values)


def _check_kind(kind: str | None) -> None:
    """SettingsError for a kind of sources that does not exist."""
    if kind is not None and kind not in CHOSEN_KINDS:
        raise SettingsError(f"input_kind is {kind!r}, expected one of {', '.join(CHOSEN_KINDS)}")
