"""The part of ``create`` that writes text parts (files with one sentence per line) if it is given records."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from bertdata.errors import BertDataError, DatasetError, SettingsError
from bertdata.io import storage
from bertdata.io.file_kind import HEAD_BYTES, find_kind
from bertdata.io.manifest_file import MANIFEST_NAME
from bertdata.io.outputs import refuse_input_as_output
from bertdata.io.patterns import expand_patterns
from bertdata.sources.find import find_files
from bertdata.sources.kinds import ARTICLES, CHOSEN_KINDS
from bertdata.sources.recognise import recognise
from bertdata.steps.create_request import CreateRequest
from bertdata.steps.keywords import collect_given
from bertdata.steps.progress import OnProgress
from bertdata.steps.record_source import (
    check_record_settings,
    make_part_settings,
    preview_records,
    run_records,
)
from bertdata.steps.segment import open_text_settings
from bertdata.steps.segment_request import GivenRecordSettings
from bertdata.steps.values import convert_optional_path, convert_path, count_workers, list_paths
from bertdata.text.part_settings import PartSettings
from bertdata.text.record_plan import RecordPlan, plan_records

_BY_BYTES = ("jsonl", "json", "parquet", "arrow")


def has_record_sources(paths: Sequence[str], given: Mapping[str, Any], skip_bad_inputs: bool) -> bool:
    """Return True if the paths are records, and not text parts (files with one sentence per line).

    Settings that only apply to records decide first. Without them, the bytes of the first file decide. In
    that case, text that ``create`` can read directly as a part is never taken for records.

    given: settings of ``segment`` that ``create`` takes too.
    skip_bad_inputs: True means that the paths are parts, since only unreadable parts can be skipped.
    """
    if given or skip_bad_inputs:
        return bool(given)
    try:
        first = expand_patterns(list(paths))[0]
        if storage.is_directory(first):
            if storage.exists(storage.join(first, MANIFEST_NAME)):
                return False
            first = find_files([first], None).files[0]
        with storage.open_input(first) as file:
            head = file.read(HEAD_BYTES + 1)
        found = recognise(first)
    # This is a directory that Hugging Face's datasets saved, and it is damaged. The caller reads it as
    # records, and then reports the damage.
    except DatasetError:
        raise
    except BertDataError:
        return False
    is_text = find_kind(head[:HEAD_BYTES], first, whole=len(head) <= HEAD_BYTES) is None
    return found in (ARTICLES, "arrow") or (found in _BY_BYTES and not is_text)


def name_text_directory(output: str) -> str:
    """Return the directory for the text parts: ``DIR.text`` for the dataset ``DIR``."""
    return f"{output.rstrip('/')}.text"


def make_parts(request: CreateRequest, progress: OnProgress) -> list[str]:
    """Write the sources' text parts next to the dataset, and return a list with their directory.

    Settings that the request leaves out are taken from the table ``text`` of its settings file. Raises the
    same errors as ``bertdata segment``.
    """
    directory = name_text_directory(convert_path(request.output))
    with _open_part_settings(request) as settings:
        run_records(
            list_paths(request.parts),
            directory,
            request.input_kind,
            settings,
            engine=request.engine,
            punkt_tables=None,
            workers=count_workers(request.workers),
            progress=progress,
        )
    return [directory]


def preview_parts(request: CreateRequest) -> list[str]:
    """Return lines for the user on the text parts that make_parts would write, without writing anything."""
    directory = name_text_directory(convert_path(request.output))
    with _open_part_settings(request) as settings:
        return preview_records(list_paths(request.parts), directory, request.input_kind, settings, None)


@contextmanager
def _open_part_settings(request: CreateRequest) -> Iterator[PartSettings]:
    """Yield the settings of the parts.

    Raises SettingsError if one is wrong or an output overlaps with an input.
    """
    output, given = convert_path(request.output), collect_given(request, GivenRecordSettings)
    _check_kind(request.input_kind)
    for directory in (output, name_text_directory(output)):
        refuse_input_as_output(directory, [*list_paths(request.parts), *given.get("exclude", ())])
    with _open_text_settings(given, convert_optional_path(request.config)) as settings:
        yield settings


def plan_texts(paths: Sequence[str], given: Mapping[str, Any]) -> RecordPlan:
    """Return the plan for reading the texts of the sources, for a caller that writes no text parts."""
    kind = given.get("input_kind")
    own = {name: value for name, value in given.items() if name != "input_kind"}
    with _open_text_settings({**own, "sentences": "none"}, None) as settings:
        _check_kind(kind)
        return plan_records(paths, kind, settings)


@contextmanager
def _open_text_settings(given: Mapping[str, Any], config: str | None) -> Iterator[PartSettings]:
    """Yield the settings for reading records, with the settings of the configuration file filled in."""
    with open_text_settings(config, given) as values:
        check_record_settings(values)
        yield make_part_settings(values)


def _check_kind(kind: str | None) -> None:
    """Raise SettingsError if ``--input-kind`` names no known kind of sources."""
    if kind is not None and kind not in CHOSEN_KINDS:
        raise SettingsError(f"input_kind is {kind!r}, expected one of {', '.join(CHOSEN_KINDS)}")
