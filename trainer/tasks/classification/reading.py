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
_WRONG_BYTE = re.compile("[\udc80-\udcff]")  # what the error handler surrogateescape makes of such bytes

SKIP_REMEDY = "; repair it, or leave such rows out: --skip-bad-records"
"""End of the error about a bad row of a labelled table."""

_COLUMN_FLAGS = {"first": "--text-column", "second": "--second-text-column", "label": "--label-column"}

Row = Mapping[str, str]
"""Values of a table's row by column name. In TSV and CSV, also by column number from 0, as text."""

SHOWN_BAD_ROWS = 3
"""Number of bad rows that get a warning each. Most further bad rows are only counted."""


class BadRows:
    """The rows of a table that cannot be used as examples.

    lines: number of lines that these rows have in the file.
    """

    def __init__(self, *, are_skipped: bool = False, remedy: str = "") -> None:
        """Make an empty list.

        are_skipped: whether such rows are left out. Otherwise the first such row is an error.
        remedy: end of the error's message, for a row that is not the first of its table.
        """
        self.are_skipped = are_skipped
        self.lines = 0
        self._remedy = remedy
        self._faults: list[str] = []

    def add(self, fault: str, *, lines: int = 1, has_remedy: bool = True) -> None:
        """Add a bad row, or raise InputError if bad rows are not left out.

        fault: place of the row, and what is wrong with it.
        lines: number of lines that the row has.
        has_remedy: whether leaving out the row would help.
        """
        if not self.are_skipped:
            raise InputError(f"{fault}{self._remedy if has_remedy else ''}")
        self.lines += lines
        if len(self._faults) < SHOWN_BAD_ROWS or lines > 1:
            self._faults.append(fault)

    def warnings(self, name: str) -> list[str]:
        """Return warnings about the rows that were left out, then one with the number of their lines.

        The first rows get a warning each, and so does every row of several lines, because a quote that
        nothing closes may have joined the good rows after it.
        name: path of the table.
        """
        if not self.lines:
            return []
        count = "1 line is" if self.lines == 1 else f"{self.lines:,} lines are"
        return [
            *(f"{fault}; left out" for fault in self._faults),
            f"{name}: {count} left out (skip_bad_records)",
        ]


def read_rows(
    file: DataFile,
    *,
    heading: bool = True,
    quoting: str | None = None,
    strict: bool = False,
    bad: BadRows | None = None,
) -> Iterator[tuple[str, Row]]:
    """Yield each row of a table after its place in the file, which is the text ``FILE: line N``.

    The file's extension decides the format: CSV, JSON lines, or else TSV. A byte-order mark is removed, and
    empty lines are skipped. All values are texts. JSON values that are not texts are converted to JSON.
    heading: whether the first row of TSV and CSV names the columns.
    quoting: "csv" if double quotes enclose values, "none" if they are ordinary characters. None means "csv"
        for CSV files and "none" for TSV files.
    strict: whether rows of a TSV file may not be longer than the first row. In CSV files they never may.
    bad: list to which faulty rows are added if it leaves them out. None: the first faulty row is an error.
    Raises InputError that names the line, what was found, and what was expected.
    """
    bad = bad or BadRows()
    name, text = file.path, file.text("a table in UTF-8", keeps_wrong_bytes=bad.are_skipped)
    if name.endswith(_JSON):
        return _read_json_objects(text, name, bad)
    is_csv = name.endswith(".csv")
    rows = _split_rows(text, name, is_csv, quoting, heading, bad)
    return _name_columns(rows, name, heading, strict=is_csv or strict, bad=bad)


def _split_rows(
    text: str, name: str, is_csv: bool, quoting: str | None, heading: bool, bad: BadRows
) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the list of values of each row of a TSV or CSV text.

    heading: whether the first row names the columns. Such a row is never left out, because the second row
        would be taken for the heading.
    bad: list to which all other faulty rows are added.
    """
    data = text.encode(errors="surrogateescape")
    delimiting = find_delimiting(data[:HEAD_BYTES], name, "csv" if is_csv else "tsv", quoting=quoting)
    before = delimiting.passed
    for row in RowReader(io.BytesIO(data), delimiting, len(data) + 1):
        lines, before = row.line - before, row.line
        fault = row.fault or _find_wrong_byte("".join(row.fields))
        is_heading, heading = heading, False
        if fault and is_heading:
            raise InputError(f"{name}: line {row.line}: {fault}")
        if row.fault:
            # A quote that nothing closes makes one row of all lines up to the end of the file.
            where = f"line {row.line}"
            if bad.are_skipped and lines > 1:
                where = f"lines {row.line - lines + 1} to {row.line}"
            bad.add(f"{name}: {where}: {row.fault}", lines=lines)
        elif fault:
            bad.add(f"{name}: line {row.line}: {fault}", lines=lines)
        else:
            yield row.line, row.fields


def _find_wrong_byte(text: str) -> str | None:
    """Return what is wrong with a text that has bytes that are not UTF-8, or None for a good text."""
    found = _WRONG_BYTE.search(text)
    return None if found is None else f"byte 0x{ord(found[0]) - 0xDC00:02x} is not UTF-8"


def _name_columns(
    rows: Iterator[tuple[int, list[str]]], name: str, heading: bool, *, strict: bool, bad: BadRows
) -> Iterator[tuple[str, Row]]:
    """Yield the place (``FILE: line N``) and the values by column of each row.

    heading: whether the first row names the columns.
    strict: whether rows may not be longer than the first. GLUE's own readers accept longer rows.
    bad: list to which faulty rows are added.
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
            bad.add(f"{name}: line {number}: has {len(row)} values, expected at most {most}, {reason}{hint}")
            continue
        yield (
            f"{name}: line {number}",
            {str(place): value for place, value in enumerate(row)} | dict(zip(columns, row, strict=False)),
        )


def _read_json_objects(text: str, name: str, bad: BadRows) -> Iterator[tuple[str, Row]]:
    """Yield the place (``FILE: line N``) and the values by key of each line, which must
    contain a JSON object.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{name}: line {number}"
        if (fault := _find_wrong_byte(line)) is not None:
            bad.add(f"{where}: {fault}")
            continue
        try:
            value = parse_json(line, where, "one object a line", any_number=True)
        except InputError as error:
            bad.add(str(error))
            continue
        if not isinstance(value, dict):
            bad.add(f"{where}: is {line.strip()!r:.40}, expected a JSON object")
            continue
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
    bad: bad rows that were left out because the user wants it.
    heading: the first row, if it was only assumed to be the heading.
    """

    name: str
    pairs: list[TextPair]
    skipped: list[str]
    bad: BadRows
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
        return [*found, *self.bad.warnings(self.name)]


def read_pairs(file: DataFile, task: ClassificationTask, *, labelled: bool = True) -> LabelledTable:
    """Read the examples of a table.

    If the task leaves out bad rows, rows with a bad label are left out too.
    labelled: whether labels are read. False for a table without labels, or if labels are not needed.
    Raises InputError that names the row if a row lacks a column.
    """
    columns, has_heading = task.columns, task.heading is not False
    if not labelled and task.test is not None:
        columns, has_heading = task.test, True
    pairs: list[TextPair] = []
    skipped: list[str] = []
    strict, known = not task.is_known, frozenset(task.labels or ())
    bad = BadRows(are_skipped=task.skips_bad, remedy=SKIP_REMEDY if labelled else "")
    for where, row in read_rows(file, heading=has_heading, quoting=task.quoting, strict=strict, bad=bad):
        missing = _find_missing_column(columns, row, labelled)
        if missing is not None:
            if task.skips_short and pairs:
                skipped.append(where)
                continue
            hint = "" if pairs else f"; {_COLUMN_FLAGS[missing]} names another"
            name_of_it = getattr(columns, missing)
            fault = f"{where}: lacks the column {name_of_it}; it has {_list_columns(row)}{hint}"
            bad.add(fault, has_remedy=bool(pairs))
            continue
        second = None if columns.second is None else row[columns.second]
        label = row[columns.label] if labelled else None
        pair = TextPair(row[columns.first], second, label, where)
        label_fault = _find_label_fault(pair, task, known) if task.skips_bad else None
        if label_fault is not None:
            bad.add(label_fault)
            continue
        pairs.append(pair)
    if not pairs:
        first = "".join(f"; {fault}" for fault in bad.warnings(file.path)[:1])
        raise InputError(f"{file.path}: holds no examples{first}")
    heading = _find_assumed_heading(file, task, pairs, labelled) if task.heading is None else None
    return LabelledTable(name=file.path, pairs=pairs, skipped=skipped, bad=bad, heading=heading)


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
    bad = BadRows(are_skipped=task.skips_bad)
    _, row = next(read_rows(file, heading=False, quoting=task.quoting, bad=bad))
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
    _refuse_faulty_labels(training.pairs, task)
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
    _refuse_faulty_labels(pairs, task)
    if task.regression:
        return [0.0 if pair.label is None else float(pair.label) for pair in pairs]
    assert task.labels is not None, task.name
    numbers = {label: number for number, label in enumerate(task.labels)}
    return [0 if pair.label is None else numbers[pair.label] for pair in pairs]


def _refuse_faulty_labels(pairs: list[TextPair], task: ClassificationTask) -> None:
    """Raise InputError for the first label or score that the task cannot use."""
    known = frozenset(task.labels or ())
    for pair in pairs:
        if (fault := _find_label_fault(pair, task, known)) is not None:
            raise InputError(f"{fault}{SKIP_REMEDY}")


def _find_label_fault(pair: TextPair, task: ClassificationTask, known: frozenset[str]) -> str | None:
    """Return the place of an example and what is wrong with its label or score, or None if it is good.

    If the labels of the task are not known yet, every label is good except an empty one.
    known: the labels of the task, as a set.
    """
    label = pair.label
    if label is None:
        return None
    if task.regression:
        is_number = _is_finite_number(label)
        return None if is_number else f"{pair.where}: has the score {label!r}, expected a number"
    if task.labels is None:
        if label.strip():
            return None
        return (
            f"{pair.where}: has an empty label; give it one (where it is a class: --labels with all labels, "
            "the empty one among them)"
        )
    if label in known:
        return None
    return f"{pair.where}: has the label {label!r}, expected one of {', '.join(task.labels)}"


def _is_finite_number(text: str) -> bool:
    """Return whether a text is a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
