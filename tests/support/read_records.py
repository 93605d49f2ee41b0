"""Reading of record files in this process, in the same way as a run."""

from pathlib import Path
from typing import Any

from bertdata.sources.find import choose_text_field, find_sources
from bertdata.sources.kinds import SOURCE_KINDS
from bertdata.sources.records import BadRecord, Record
from bertdata.sources.settings import RecordSettings


def read_records(*paths: Path, kind: str | None = None, **changes: Any) -> list[Record | BadRecord]:
    """Return all records of the files. Raises the errors that end a run before its first record."""
    settings = RecordSettings(**changes)
    found = find_sources(
        [str(path) for path in paths], kind, as_is=settings.as_is, encoding=settings.encoding
    )
    settings = choose_text_field(settings, found.files, found.kinds)
    records: list[Record | BadRecord] = []
    for path, name in zip(found.files, found.kinds, strict=True):
        for piece in SOURCE_KINDS[name].pieces(path, settings):
            records += piece.read(settings).records
    return records


def texts(*paths: Path, **changes: Any) -> list[str]:
    """Return the text of every record. AssertionError for a bad record."""
    found = read_records(*paths, **changes)
    assert all(isinstance(one, Record) for one in found), found
    return [one.text for one in found if isinstance(one, Record)]


def faults(*paths: Path, **changes: Any) -> list[tuple[str, str]]:
    """Return (reason, fault) of each bad record."""
    found = read_records(*paths, **changes)
    return [(one.reason, one.fault) for one in found if isinstance(one, BadRecord)]
