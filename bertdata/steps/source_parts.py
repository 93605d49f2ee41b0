"""The parts of ``create`` where it is given sources of records: made as ``segment`` makes them."""

from collections.abc import Mapping, Sequence
from typing import Any

from bertdata._native import Engine
from bertdata.errors import BertDataError, SettingsError
from bertdata.io import storage
from bertdata.io.file_kind import find_kind
from bertdata.io.manifest_file import MANIFEST_NAME
from bertdata.sources.find import find_files
from bertdata.sources.kinds import HEAD_BYTES, RECORD_KINDS, recognise
from bertdata.steps.progress import OnProgress
from bertdata.steps.record_source import OPTIONS, part_settings, preview_records, run_records

_BY_BYTES = ("jsonl", "parquet", "arrow")
SOURCE_OPTIONS = ("input_kind", "language", *OPTIONS)
"""Settings of ``segment`` that ``create`` takes too, for sources."""


def holds_records(paths: Sequence[str], given: Mapping[str, Any]) -> bool:
    """True where the paths are sources of records: by their settings, or by the first file's bytes.

    A text that is read as a part without these settings is never taken for one.
    """
    unknown = sorted(set(given) - set(SOURCE_OPTIONS))
    if unknown:
        raise SettingsError(f"{unknown[0]} is no setting of sources, which are {', '.join(SOURCE_OPTIONS)}")
    if given:
        return True
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
    return found == "arrow" or (found in _BY_BYTES and not is_text)


def text_directory(output: str) -> str:
    """The directory of the parts, beside the dataset's."""
    return f"{output.rstrip('/')}.text"


def make_parts(
    paths: Sequence[str],
    output: str,
    given: Mapping[str, Any],
    *,
    workers: int,
    engine: Engine | None,
    progress: OnProgress,
) -> list[str]:
    """Make the parts of the sources, beside the dataset, and name their directory. Errors as from segment."""
    directory, kind = text_directory(output), _kind(given)
    settings = part_settings({name: value for name, value in given.items() if name != "input_kind"})
    run_records(
        paths, directory, kind, settings, engine=engine, punkt_tables=None, workers=workers, progress=progress
    )
    return [directory]


def preview_parts(paths: Sequence[str], output: str, given: Mapping[str, Any]) -> list[str]:
    """The lines on the parts that would be made."""
    settings = part_settings({name: value for name, value in given.items() if name != "input_kind"})
    return preview_records(paths, text_directory(output), _kind(given), settings, None)


def _kind(given: Mapping[str, Any]) -> str | None:
    kind: str | None = given.get("input_kind")
    if kind is not None and kind not in (*RECORD_KINDS, "text"):
        raise SettingsError(f"input_kind is {kind!r}, expected one of {', '.join(RECORD_KINDS)} or text")
    return kind
