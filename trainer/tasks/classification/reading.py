"""Texts and pairs of texts with their labels or scores, read from a table."""

import math
import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from bertdata.errors import InputError
from trainer.tasks.classification.presets import ClassificationTask, TableColumns
from trainer.tasks.classification.table import JSON_ENDINGS, BadRows, TableRow, read_rows
from trainer.tasks.data_file import DataFile

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,3})?")

SKIP_REMEDY = "; repair it, or leave such rows out: --skip-bad-records"
"""End of the error about a bad row of a labelled table."""

_COLUMN_FLAGS = {"first": "--text-column", "second": "--second-text-column", "label": "--label-column"}


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
    if file.path.endswith(JSON_ENDINGS) or not all(name.isdecimal() for name in used if name is not None):
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


def _find_missing_column(columns: TableColumns, row: TableRow, labelled: bool) -> str | None:
    """Return the name of the first column that the row lacks ("first", "second" or "label"), or None."""
    wanted = {"first": columns.first, "second": columns.second, "label": columns.label if labelled else None}
    return next((kind for kind, name in wanted.items() if name is not None and name not in row), None)


def _list_columns(row: TableRow) -> str:
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
