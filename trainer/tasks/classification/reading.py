"""Texts and pairs of texts with labels, read from a table: TSV, CSV, or JSON lines."""

import io
import json
import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bertdata.errors import InputError
from bertdata.io.file_kind import HEAD_BYTES
from bertdata.io.json_text import NumberText
from bertdata.sources.delimited import RowReader, find_delimiting
from trainer.tasks.classification.presets import ClassificationTask, TableColumns
from trainer.tasks.data_file import DataFile, parse_json

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,3})?")
_JSON = (".jsonl", ".json")

Row = Mapping[str, str]
"""Values of a table's row by column name. In TSV and CSV, also by column number from 0, as text."""


def read_rows(
    file: DataFile, *, heading: bool = True, quoting: str | None = None, strict: bool = False
) -> Iterator[tuple[str, Row]]:
    """Yield each row of a table after its place in the file, which is the text ``FILE: line N``.

    The file's extension decides the format: CSV, JSON lines, or else TSV. A byte-order mark is removed, and
    empty lines are skipped. All values are texts. JSON values that are not texts are converted to JSON.
    heading: whether the first row of TSV and CSV names the columns.
    quoting: "csv" if double quotes enclose values, "none" if they are ordinary characters. None means "csv"
        for CSV files and "none" for TSV files.
    strict: whether rows of a TSV file may not be longer than the first row. In CSV files they never may.
    Raises InputError that names the line, what was found, and what was expected.
    """
    name, text = file.path, file.text("a table in UTF-8")
    if name.endswith(_JSON):
        return _read_json_objects(text, name)
    is_csv = name.endswith(".csv")
    return _name_columns(_split_rows(text, name, is_csv, quoting), name, heading, strict=is_csv or strict)


def _split_rows(text: str, name: str, is_csv: bool, quoting: str | None) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the list of values of each row of a TSV or CSV text."""
    data = text.encode()
    delimiting = find_delimiting(data[:HEAD_BYTES], name, "csv" if is_csv else "tsv", quoting=quoting)
    for row in RowReader(io.BytesIO(data), delimiting, len(data) + 1):
        if row.fault:
            raise InputError(f"{name}: line {row.line}: {row.fault}")
        yield row.line, row.fields


def _name_columns(
    rows: Iterator[tuple[int, list[str]]], name: str, heading: bool, *, strict: bool
) -> Iterator[tuple[str, Row]]:
    """Yield the place (``FILE: line N``) and the values by column of each row.

    heading: whether the first row names the columns.
    strict: whether rows may not be longer than the first. GLUE's own readers accept longer rows.
    """
    columns = next(rows, (0, []))[1] if heading else []
    most, reason = len(columns), "as the heading has columns"
    if len(set(columns)) < len(columns):
        twice = next(column for column in columns if columns.count(column) > 1)
        raise InputError(f"{name}: line 1: names the column {twice!r} twice")
    for number, row in rows:
        if not most:
            most, reason = len(row), "as the first row has"
        if strict and len(row) > most:
            hint = "" if name.endswith(".csv") else "; a tab within a text divides it"
            raise InputError(
                f"{name}: line {number}: has {len(row)} values, expected at most {most}, {reason}{hint}"
            )
        yield (
            f"{name}: line {number}",
            {str(place): value for place, value in enumerate(row)} | dict(zip(columns, row, strict=False)),
        )


def _read_json_objects(text: str, name: str) -> Iterator[tuple[str, Row]]:
    """Yield the place (``FILE: line N``) and the values by key of each line, which must
    contain a JSON object.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{name}: line {number}"
        value = parse_json(line, where, "one object a line", any_number=True)
        if not isinstance(value, dict):
            raise InputError(f"{where}: is {line.strip()!r:.40}, expected a JSON object")
        there = {key: item for key, item in value.items() if not _is_null_or_nan(item)}
        yield where, {key: _convert_to_text(one) for key, one in there.items()}


def _convert_to_text(value: Any) -> str:
    """Return a JSON value as the text of a table's cell.

    Texts are unchanged, and other values are written as JSON.
    """
    if isinstance(value, str | NumberText):
        return str(value)
    return json.dumps(value, default=str)


def _is_null_or_nan(value: Any) -> bool:
    """Return True if the value is null, or the NaN that pandas writes instead of null."""
    return value is None or value != value


@dataclass(frozen=True, slots=True)
class TextPair:
    """An example of one or two texts with its label.

    label: the label as it is written in the table. None if labels are not read.
    """

    first: str
    second: str | None
    label: str | None
    where: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledTable:
    """The examples of a table, in the order of its rows.

    skipped: places of the rows that were left out because they lack columns.
    heading: the first row, if it was only assumed to be the heading.
    """

    name: str
    pairs: list[TextPair]
    skipped: list[str]
    heading: list[str] | None = None

    def warnings(self) -> list[str]:
        """Return warnings about rows that were not used as examples."""
        found = []
        if self.heading is not None:
            found.append(
                f"{self.name}: line 1 is taken for the heading: {', '.join(map(repr, self.heading))[:200]}; "
                "--no-heading where it is an example"
            )
        if self.skipped:
            found.append(
                f"{self.skipped[0]}: lacks columns, and so do {len(self.skipped) - 1} other rows; they are "
                "left out"
            )
        return found


def read_pairs(file: DataFile, task: ClassificationTask, *, labelled: bool = True) -> LabelledTable:
    """Read the examples of a table.

    labelled: whether labels are read. False for a table without labels, or if labels are not needed.
    Raises InputError that names the row if a row lacks a column.
    """
    columns, has_heading = task.columns, task.heading is not False
    if not labelled and task.test is not None:
        columns, has_heading = task.test, True
    pairs: list[TextPair] = []
    skipped: list[str] = []
    strict = not task.is_known
    for where, row in read_rows(file, heading=has_heading, quoting=task.quoting, strict=strict):
        missing = _find_missing_column(columns, row, labelled)
        if missing is None:
            second = None if columns.second is None else row[columns.second]
            label = row[columns.label] if labelled else None
            pairs.append(TextPair(row[columns.first], second, label, where))
        elif task.skips_short and pairs:
            skipped.append(where)
        else:
            hint = "" if pairs else f"; --{missing}-column names another"
            name_of_it = getattr(columns, missing)
            raise InputError(f"{where}: lacks the column {name_of_it}; it has {_list_columns(row)}{hint}")
    if not pairs:
        raise InputError(f"{file.path}: holds no examples")
    heading = _find_assumed_heading(file, task, pairs, labelled) if task.heading is None else None
    return LabelledTable(name=file.path, pairs=pairs, skipped=skipped, heading=heading)


def _find_assumed_heading(
    file: DataFile, task: ClassificationTask, pairs: list[TextPair], labelled: bool
) -> list[str] | None:
    """Return the first row if it is only assumed to be the heading, otherwise None.

    If the columns are given by name, the table must have a heading, so nothing is assumed.
    pairs: the examples of the table.
    labelled: whether labels are read.
    Raises InputError if the label in the first row shows that this row is an example.
    """
    columns = task.columns
    used = [columns.first, columns.second, columns.label if labelled else None]
    if file.path.endswith(_JSON) or not all(name.isdecimal() for name in used if name is not None):
        return None
    _, row = next(read_rows(file, heading=False, quoting=task.quoting))
    label = row.get(columns.label) if labelled else None
    is_score = task.regression and _NUMBER.fullmatch(label or "")
    if label is not None and (is_score or any(pair.label == label for pair in pairs)):
        found = "a score" if task.regression else "a label of other rows"
        raise InputError(
            f"{file.path}: line 1: is read as the heading, but {label!r} in column {columns.label} is "
            f"{found}; give --no-heading where it is an example, or --heading"
        )
    return list(row.values())


def _find_missing_column(columns: TableColumns, row: Row, labelled: bool) -> str | None:
    """Return the name of the first column that the row lacks ("first", "second" or "label"), or None."""
    wanted = {"first": columns.first, "second": columns.second, "label": columns.label if labelled else None}
    return next((kind for kind, name in wanted.items() if name is not None and name not in row), None)


def _list_columns(row: Row) -> str:
    """Return the names of the row's columns as text, for an error message."""
    named = [name for name in row if not name.isdecimal()]
    return ", ".join(named) if named else f"{len(row)} columns, numbered from 0"


def find_labels(task: ClassificationTask, training: LabelledTable) -> ClassificationTask:
    """Return the task with its labels. If it has none, it gets the labels of the training examples, sorted.

    Raises InputError for an empty label. Also raises it for numbers with fractions, which may
    be scores or classes.
    """
    if task.labels is not None or task.regression:
        return task
    for pair in training.pairs:
        if pair.label is not None and not pair.label.strip():
            raise InputError(
                f"{pair.where}: has an empty label; give it one or leave the row out (where it is a class: "
                "--labels with all labels, the empty one among them)"
            )
    found = sort_labels({pair.label for pair in training.pairs if pair.label is not None})
    if len(found) < 2:
        raise InputError(
            f"{training.name}: has the labels {', '.join(map(repr, found)) or 'none'}, expected two or more"
        )
    if are_scores(found):
        raise InputError(
            f"{training.name}: its labels are {len(found)} numbers with fractions ({', '.join(found[:3])}, "
            "...), expected classes; give --regression where they are scores, or --labels with all of them"
        )
    return replace(task, labels=tuple(found))


def sort_labels(labels: Collection[str]) -> list[str]:
    """Return the labels in the order of their ids.

    Whole numbers are sorted by value, and other labels as texts.
    """
    if all(_WHOLE.fullmatch(label) for label in labels):
        return sorted(labels, key=lambda label: (int(label), label))
    return sorted(labels)


def are_scores(labels: Collection[str]) -> bool:
    """Return True if all labels are numbers, and at least one has a fraction or an exponent."""
    is_number = all(_NUMBER.fullmatch(label) for label in labels)
    return is_number and not all(_WHOLE.fullmatch(label) for label in labels)


def convert_labels(pairs: list[TextPair], task: ClassificationTask) -> list[int] | list[float]:
    """Return the label id or the score of each example. It is 0 if labels were not read.

    Raises InputError for a label that the task does not have, or for a score that is not a number.
    """
    if task.regression:
        return [0.0 if pair.label is None else _parse_score(pair.label, pair.where) for pair in pairs]
    assert task.labels is not None, task.name
    numbers = {label: number for number, label in enumerate(task.labels)}
    for pair in pairs:
        if pair.label is not None and pair.label not in numbers:
            raise InputError(
                f"{pair.where}: has the label {pair.label!r}, expected one of {', '.join(task.labels)}"
            )
    return [0 if pair.label is None else numbers[pair.label] for pair in pairs]


def _parse_score(text: str, where: str) -> float:
    """Return the score in a text. Raise InputError if it is not a finite number."""
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise InputError(f"{where}: has the score {text!r}, expected a number")
    return score
