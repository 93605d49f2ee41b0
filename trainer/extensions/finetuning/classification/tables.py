"""Rows of tables with named columns: TSV without quoting, CSV, and JSON lines."""

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from bertdata.errors import InputError
from bertdata.io.json_text import parse_json_text
from trainer.extensions.finetuning.labelled_text import decode_text

Row = Mapping[str, str]
"""The values of a row by column: by the heading's names and, of TSV and CSV, by numbers from 0 too."""

KINDS = ("tsv", "csv", "jsonl")
_ENDINGS = {".csv": "csv", ".jsonl": "jsonl", ".json": "jsonl"}


def table_kind(path: str) -> str:
    """The kind of a file by its ending; tsv for any that is not known."""
    return next((kind for ending, kind in _ENDINGS.items() if path.endswith(ending)), "tsv")


def parse_rows(data: bytes, name: str, kind: str, *, heading: bool = True) -> Iterator[tuple[str, Row]]:
    """Each row of a table with its place (``FILE: line N``); kind: one of KINDS.

    heading: the first row of TSV and CSV names the columns. A byte-order mark is dropped, an empty line is no
    row. Values are texts; one of JSON that is none is written as JSON. InputError names line, what was found
    and what was expected.
    """
    text = decode_text(data, name, "a table in UTF-8")
    if kind == "jsonl":
        return _objects(text, name)
    rows = _csv_rows(text, name) if kind == "csv" else _tsv_rows(text)
    return _named_rows(rows, name, heading, strict=kind == "csv")


def _tsv_rows(text: str) -> Iterator[tuple[int, list[str]]]:
    r"""Line number and values of each line that is not empty; a line ends with ``\n`` or ``\r\n``."""
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")
        if line:
            yield number, line.split("\t")


def _csv_rows(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise InputError(f"{name}: line {reader.line_num}: is not CSV: {error}") from None


def _named_rows(
    rows: Iterator[tuple[int, list[str]]], name: str, heading: bool, *, strict: bool
) -> Iterator[tuple[str, Row]]:
    """Each row by column; strict: refuse one that is longer than the heading, which GLUE's readers take."""
    columns = next(rows, (0, []))[1] if heading else []
    if len(set(columns)) < len(columns):
        twice = next(column for column in columns if columns.count(column) > 1)
        raise InputError(f"{name}: line 1: names the column {twice!r} twice")
    for number, row in rows:
        if strict and len(row) > len(columns) > 0:
            raise InputError(
                f"{name}: line {number}: has {len(row)} values, expected at most {len(columns)}, as the "
                "heading has columns"
            )
        yield (
            f"{name}: line {number}",
            {str(place): value for place, value in enumerate(row)} | dict(zip(columns, row, strict=False)),
        )


def _objects(text: str, name: str) -> Iterator[tuple[str, Row]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{name}: line {number}"
        try:
            value = parse_json_text(line)
        except ValueError as error:
            raise InputError(f"{where}: is not JSON: {error}; expected one object a line") from None
        if not isinstance(value, dict):
            raise InputError(f"{where}: is {line.strip()!r:.40}, expected a JSON object")
        yield where, {key: _text(item) for key, item in value.items() if item is not None}


def _text(value: Any) -> str:
    import json

    return value if isinstance(value, str) else json.dumps(value)
