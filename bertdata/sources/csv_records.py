"""Read records from CSV and TSV files, with a line of column names or with columns numbered from 0."""

from collections.abc import Iterator

from bertdata.errors import InputError, SettingsError
from bertdata.io.file_kind import HEAD_BYTES
from bertdata.sources.delimited import Delimiting, Row, RowReader, find_delimiting
from bertdata.sources.encoding import open_decoded
from bertdata.sources.fields import TextFields
from bertdata.sources.json_lines import make_record
from bertdata.sources.piece import PIECE_BYTES, Found, RowsPiece, number_records
from bertdata.sources.records import BadRecord, Record
from bertdata.sources.settings import RecordSettings

_LONGEST_NAME = 64
_MOST_WORDS = 5
_ENDS = (".", "!", "?", "…", "。", "！", "？", "।")


def read_csv_columns(path: str, settings: RecordSettings, *, kind: str) -> TextFields:
    """Return the names of a CSV or TSV file's columns, each of which may hold the text.

    Raises InputError if the file has no line of names. Raises SettingsError if the file has a single column
    whose name reads like a record, since the file then probably has no line of names.
    """
    names = _read_names(path, settings, kind)
    # Without a heading, the first record would be taken for a name and be lost. With several columns the user
    # notices this, because the text field must be chosen by its name. With a single column nothing would show
    # it.
    is_sure = settings.no_heading or settings.text_field is not None or len(names) > 1
    if not is_sure and _is_like_record(names[0]):
        raise SettingsError(
            f"{path}: its first line is {names[0][:60]!r}, which reads like a record, not like the name of a "
            "column; take it as a record: --no-heading, or as a name: --text-field with that name"
        )
    return TextFields(names, [], [])


def _is_like_record(name: str) -> bool:
    """Return True if a column's name looks like a record: a number, a sentence, or many words."""
    if name.isdecimal() or len(name) > _LONGEST_NAME or len(name.split()) > _MOST_WORDS:
        return True
    return name.rstrip("\"' ").endswith(_ENDS)


def _read_names(path: str, settings: RecordSettings, kind: str) -> list[str]:
    """Return the names in the first line of the file."""
    with open_decoded(path, settings.encoding) as file:
        row = next(iter(RowReader(file, _detect_delimiting(path, settings, kind), settings.raw_bytes)), None)
    if settings.no_heading:
        return [] if row is None else [str(place) for place in range(len(row.fields))]
    return _check_names(row, path, settings)


def _check_names(row: Row | None, path: str, settings: RecordSettings) -> list[str]:
    """Return the fields of the first row as names. Raises InputError if they cannot be names of columns."""
    if row is not None and row.fault:
        raise InputError(f"{path}: record 0: the line of names {row.fault}")
    if row is None or not any(row.fields):
        raise InputError(f"{path}: has no line of names, expected one before the first record")
    for name in (settings.text_field, settings.id_field, settings.language_field):
        if row.fields.count(name or "") > 1 and name is not None:
            raise InputError(f"{path}: names the column {name!r} twice; rename one of the two")
    return row.fields


def _detect_delimiting(path: str, settings: RecordSettings, kind: str) -> Delimiting:
    """Find out how the file is split into rows and fields, from its first bytes and the settings."""
    with open_decoded(path, settings.encoding) as file:
        head = file.read(HEAD_BYTES)
    return find_delimiting(head, path, kind, quoting=settings.quoting, separator=settings.separator)


def split_csv(path: str, settings: RecordSettings, *, kind: str) -> Iterator[RowsPiece]:
    """Read the records of a CSV or TSV file, and yield them in pieces, that is, groups of consecutive
    records.
    """
    delimiting = _detect_delimiting(path, settings, kind)
    with open_decoded(path, settings.encoding) as file:
        rows = RowReader(file, delimiting, settings.raw_bytes)
        each = iter(rows)
        first = next(each, None)
        if first is None:
            return
        found: Found = []
        if settings.no_heading:
            names = [str(place) for place in range(len(first.fields))]
            found.append(_make_csv_record(first, names, delimiting, settings))
        else:
            names = _check_names(first, path, settings)
        told = 0
        for row in each:
            found.append(_make_csv_record(row, names, delimiting, settings))
            if rows.read - told >= PIECE_BYTES:
                yield RowsPiece(number_records(found), rows.read - told)
                found, told = [], rows.read
        yield RowsPiece(number_records(found), rows.read - told)


def _make_csv_record(
    row: Row, names: list[str], delimiting: Delimiting, settings: RecordSettings
) -> Record | BadRecord:
    """Make a record from a row. A faulty row gives a BadRecord."""
    if row.is_too_long:
        return BadRecord(0, "too_long", row.fault)
    if row.fault:
        return BadRecord(0, "malformed", row.fault)
    if len(row.fields) != len(names):
        fault = f"has {len(row.fields)} fields, expected {len(names)}"
        if delimiting.quoting == "none" and any(field.startswith('"') for field in row.fields):
            fault += " (quotes are text here; --quoting csv lets them enclose a field)"
        return BadRecord(0, "malformed", fault)
    return make_record(0, dict(zip(names, row.fields, strict=True)), settings)
