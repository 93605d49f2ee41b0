"""The texts of evaluation sets: every text of every record, whatever its field.

Of JSON all texts at any depth, so that SQuAD's files need no conversion; of tables all columns of texts; of
plain text what stands between blank lines.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

from bertdata._native import Engine
from bertdata.errors import InputError
from bertdata.io.json_text import parse_json_text
from bertdata.sources.json_lines import parse_line
from bertdata.sources.kinds import BLOCKS, SOURCE_KINDS, read_head, recognise
from bertdata.sources.line_pieces import line_blocks
from bertdata.sources.records import BadRecord
from bertdata.sources.settings import MOST_RECORD_BYTES, RecordSettings
from bertdata.sources.unpacking import open_unpacked
from bertdata.text.selection.ngrams import Ngrams
from bertdata.text.selection.settings import EvaluationFile

_SETTINGS = RecordSettings(max_record_bytes=MOST_RECORD_BYTES)


@lru_cache(maxsize=1)
def load_ngrams(files: tuple[EvaluationFile, ...], words: int, engine: Engine | None) -> Ngrams:
    """The n-grams of all texts of the files, loaded once in each process. A source is a file's number."""
    ngrams = Ngrams(words, engine=engine)
    for source, file in enumerate(files):
        longest = max((ngrams.add(text, source) for text in evaluation_texts(file.path)), default=0)
        if longest < words:
            raise InputError(
                f"{file.path}: its longest text has {longest} words, expected {words} or more, those of an "
                "n-gram; choose fewer: --exclude-ngram N"
            )
    return ngrams


def evaluation_texts(path: str) -> Iterator[str]:
    """The texts of a file. InputError, with the record, for one that cannot be read."""
    kind = recognise(path)
    if kind == "jsonl":
        yield from _texts_of_lines(path)
    elif kind is None and read_head(path).lstrip()[:1] in (b"{", b"["):
        yield from _texts_of_json(path)
    elif kind is None or (columns := SOURCE_KINDS[kind].columns) is None:
        yield from _texts_of_records(path, kind or BLOCKS, _SETTINGS)
    else:
        for name in columns(path):
            yield from _texts_of_records(path, kind, replace(_SETTINGS, text_field=name))


def _texts_of_lines(path: str) -> Iterator[str]:
    number = 0
    for data in line_blocks(path, _SETTINGS.raw_bytes):
        for line in data.removesuffix(b"\n").split(b"\n"):
            number += 1
            try:
                yield from _texts_in(parse_line(line) if line.strip() else None)
            except ValueError as error:
                raise InputError(f"{path}: record {number}: is not JSON: {error}") from None


def _texts_of_json(path: str) -> Iterator[str]:
    with open_unpacked(path) as file:
        data = file.read()
    try:
        value = parse_json_text(data, any_number=True)
    except ValueError as error:
        raise InputError(f"{path}: is not JSON, nor JSON lines: {error}") from None
    yield from _texts_in(value)


def _texts_in(value: Any) -> Iterator[str]:
    """The texts within a JSON value."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            waiting += reversed(one.values())
        elif isinstance(one, list):
            waiting += reversed(one)


def _texts_of_records(path: str, kind: str, settings: RecordSettings) -> Iterator[str]:
    numbers = 0
    for piece in SOURCE_KINDS[kind].pieces(path, settings):
        read = piece.read(settings)
        for record in read.records:
            if not isinstance(record, BadRecord):
                yield record.text
            elif record.reason != "empty":
                raise InputError(f"{path}: record {numbers + record.number}: {record.fault}")
        numbers += read.numbers
