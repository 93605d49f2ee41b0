"""Read the texts of evaluation sets, so that documents containing them can be left out of training.

In JSON, Parquet and Arrow files, all texts at any depth are read, so that SQuAD's files need no conversion.
In CSV and TSV files every field is read, and in plain text every block between blank lines.
"""

from collections.abc import Iterator
from functools import lru_cache

from bertdata._native import Engine
from bertdata.errors import InputError
from bertdata.io.file_identity import identify_file, make_changed_error
from bertdata.io.file_kind import suggest_utf8_remedy
from bertdata.io.json_text import parse_json_text
from bertdata.sources.arrow_records import read_arrow_texts
from bertdata.sources.delimited import DEFAULT_DELIMITING, RowReader, find_delimiting
from bertdata.sources.fields import find_texts
from bertdata.sources.json_lines import parse_line
from bertdata.sources.kinds import BLOCKS, SOURCE_KINDS
from bertdata.sources.line_pieces import read_line_blocks
from bertdata.sources.parquet_records import read_parquet_texts
from bertdata.sources.recognise import (
    Beginning,
    is_binary,
    make_unknown_kind_error,
    read_beginning,
    recognise_kind,
    recognise_other_kind,
)
from bertdata.sources.records import BadRecord
from bertdata.sources.settings import RecordSettings
from bertdata.sources.unpacking import open_unpacked
from bertdata.text.selection.ngrams import Ngrams
from bertdata.text.selection.settings import EvaluationFile

MOST_JSON_BYTES = 1 << 27
"""Largest JSON value in bytes, which may be a whole file or a line. Its Python objects take ten times as
much.
"""

_SETTINGS = RecordSettings(max_record_bytes=1 << 25)


@lru_cache(maxsize=1)
def load_ngrams(
    files: tuple[EvaluationFile, ...], words: int, engine: Engine | None, tables: RecordSettings = _SETTINGS
) -> Ngrams:
    """Collect the n-grams of all texts in the evaluation files. They are loaded once per process.

    The set stores with each n-gram the index of its file in ``files``. Raises InputError if the longest text
    of a file is shorter than an n-gram, and ChangedInputError if a file has changed since its md5 was
    computed.

    words: number of words in an n-gram.
    tables: settings that say how CSV and TSV are split into rows and fields.
    """
    ngrams = Ngrams(words, engine=engine)
    for source, file in enumerate(files):
        identity = identify_file(file.path)
        texts = read_evaluation_texts(file.path, tables)
        longest = max((ngrams.add(text, source) for text in texts), default=0)
        if identity.with_md5().md5 != file.md5:
            raise make_changed_error(file.path, f"its md5 was {file.md5} when the run began")
        if longest < words:
            raise InputError(
                f"{file.path}: its longest text has {longest} words, expected {words} or more, those of an "
                "n-gram; choose fewer: --exclude-ngram N"
            )
    return ngrams


def read_evaluation_texts(path: str, tables: RecordSettings = _SETTINGS) -> Iterator[str]:
    """Yield every text in a file of any supported format.

    Raises InputError for a record that cannot be read. The message names the record.

    tables: settings that say how CSV and TSV are split into rows and fields.
    """
    # In formats with fields, the texts of all fields are read. Plain text and articles are read as ``create``
    # would read them.
    begin = read_beginning(path)
    kind = recognise_kind(begin)
    if kind == "jsonl":
        yield from _read_json_lines(path)
    elif kind == "json" or (kind is None and begin.text.lstrip()[:1] in (b"{", b"[")):
        yield from _read_json_file(path)
    elif kind == "parquet":
        yield from read_parquet_texts(path)
    elif kind == "arrow":
        yield from read_arrow_texts(path)
    elif kind in DEFAULT_DELIMITING:
        yield from _read_table(begin, kind, tables)
    else:
        if kind is None and (recognise_other_kind(begin) is not None or is_binary(begin.head)):
            raise make_unknown_kind_error(begin)
        yield from _read_records(path, kind or BLOCKS, _SETTINGS)


def _read_json_lines(path: str) -> Iterator[str]:
    """Yield every text in a file of JSON lines, at any depth."""
    number = 0
    for data in read_line_blocks(path, MOST_JSON_BYTES):
        for line in data.removesuffix(b"\n").split(b"\n"):
            number += 1
            if len(line) > MOST_JSON_BYTES:
                raise InputError(
                    f"{path}: record {number}: a line of more than {MOST_JSON_BYTES} bytes; give its texts "
                    "in lines of their own"
                )
            try:
                yield from find_texts(parse_line(line) if line.strip() else None)
            except ValueError as error:
                raise InputError(f"{path}: record {number}: is not JSON: {error}") from None


def _read_json_file(path: str) -> Iterator[str]:
    """Yield every text in a JSON file, at any depth."""
    with open_unpacked(path) as file:
        data = file.read(MOST_JSON_BYTES + 1)
    if len(data) > MOST_JSON_BYTES:
        raise InputError(
            f"{path}: is one JSON value of more than {MOST_JSON_BYTES} bytes; give its texts as JSON lines, "
            "an object a line"
        )
    try:
        value = parse_json_text(data.decode().removeprefix("\ufeff"), any_number=True)
    except UnicodeDecodeError as error:
        raise InputError.not_utf8(path, data, error.start, suggest_utf8_remedy(data, path)) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON, nor JSON lines: {error}") from None
    yield from find_texts(value)


def _read_table(begin: Beginning, kind: str, tables: RecordSettings) -> Iterator[str]:
    """Yield every field of every row, including the first row.

    The first row may be a record. If the first row holds column names, they are searched for too, which does
    no harm.
    """
    delimiting = find_delimiting(
        begin.head, begin.path, kind, quoting=tables.quoting, separator=tables.separator
    )
    with open_unpacked(begin.path) as file:
        for row in RowReader(file, delimiting, _SETTINGS.raw_bytes):
            if row.fault:
                raise InputError(f"{begin.path}: line {row.line}: {row.fault}")
            yield from row.fields


def _read_records(path: str, kind: str, settings: RecordSettings) -> Iterator[str]:
    """Yield the text of every record in a file of plain text or articles."""
    numbers = 0
    for piece in SOURCE_KINDS[kind].pieces(path, settings):
        read = piece.read(settings)
        for record in read.records:
            if not isinstance(record, BadRecord):
                yield record.text
            elif record.reason != "empty":
                raise InputError(f"{path}: record {numbers + record.number}: {record.fault}")
        numbers += read.numbers
