"""Labels of a classification run: how many examples have each, and how well each was predicted."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import BertDataError
from bertdata.io import storage
from bertdata.reports.charts.values import DataTable, Value
from bertdata.reports.page.blocks import MatrixBlock, PageContent, Prose
from trainer.logs.recorded_run import RecordedRun
from trainer.report.run_data import open_run_data
from trainer.tasks.classification.metrics import read_all_labels, read_predictions
from trainer.tasks.classification.presets import ClassificationTask, TableColumns
from trainer.tasks.data_file import read_file

_PREDICTIONS = "predictions.tsv"
_MOST_IN_MATRIX = 20
_PAGE_ROWS = 25
_MOST_CONFUSIONS = 50


class LabelScores(NamedTuple):
    """Scores of the predictions of a label.

    examples: number of evaluated examples that have the label.
    precision: share of the examples predicted to have the label that have it. None if there are none.
    recall: share of the examples with the label that were predicted to have it. None if there are none.
    f1: harmonic mean of precision and recall. None if no example has the label or is predicted to have it.
    """

    examples: int
    precision: float | None
    recall: float | None
    f1: float | None


def make_class_blocks(run: RecordedRun) -> Iterator[PageContent]:
    """Yield the tables about the labels of a run. There are none for other tasks than classification."""
    labels = run.config.get("labels")
    if not isinstance(labels, list) or not labels:
        return
    names = tuple(map(str, labels))
    task = ClassificationTask(name="report", columns=TableColumns(first="0"), labels=names)
    training, evaluation = (
        _count_labels(task, open_run_data(run, setting)) for setting in ("train_data", "eval_data")
    )
    yield _make_labels_table(names, training, evaluation)
    if (confusions := count_confusions(run, task)) is None:
        return
    if isinstance(confusions, str):
        yield Prose(confusions)
        return
    if len(names) <= _MOST_IN_MATRIX:
        counts = tuple(map(tuple, confusions.tolist()))
        note = (
            "Of the last evaluation. Each row is shaded by the share of its examples. On the diagonal are "
            "the right predictions."
        )
        yield MatrixBlock("Confusion matrix", "right label", "predicted", names, counts, note)
    else:
        yield _make_confusions_table(names, confusions)
    yield _make_scores_table(names, score_classes(confusions))


def _count_labels(task: ClassificationTask, data: OpenedDataset | None) -> list[int] | None:
    """Return the number of examples with each label, or None if the data cannot be read."""
    if data is None:
        return None
    with suppress(BertDataError):
        found = read_all_labels(task, data)
        if not len(found) or found.max() < len(task.labels or ()):
            counts: list[int] = np.bincount(found, minlength=len(task.labels or ())).tolist()
            return counts
    return None


def _make_labels_table(
    names: Sequence[str], training: list[int] | None, evaluation: list[int] | None
) -> DataTable:
    """Return the table of labels with the numbers of their examples.

    training, evaluation: number of examples with each label. None if it is not known.
    """
    columns: list[str] = ["label", "id"]
    rows: list[list[Value]] = [[name, str(number)] for number, name in enumerate(names)]
    for title, counts in (("training", training), ("evaluation", evaluation)):
        if counts is None:
            continue
        columns += [f"{title} examples", f"{title} (%)"]
        for row, count in zip(rows, counts, strict=True):
            row += [count, 100 * count / max(sum(counts), 1)]
    known = training is not None and evaluation is not None
    note = "" if known else "The data no longer exist, so the number of examples is not known."
    table = tuple(map(tuple, rows))
    return DataTable("Labels", tuple(columns), table, note, page_rows=_PAGE_ROWS)


def count_confusions(run: RecordedRun, task: ClassificationTask) -> "np.ndarray | str | None":
    """Return the confusion matrix of the last evaluation: counts by right label and predicted label.

    They come from the evaluation data and from predictions.tsv in the run's directory. If this file is not of
    the last evaluation, a sentence says so. None if the data or the file do not exist.
    """
    path = storage.join(run.path, _PREDICTIONS)
    data = open_run_data(run, "eval_data")
    evaluations = run.phases[-1].evaluations
    if data is None or not evaluations or not storage.exists(path):
        return None
    evaluated = int(evaluations[-1].get("examples", data.examples))
    stale = f"{_PREDICTIONS} is not of the last evaluation, so there is no confusion matrix."
    try:
        right = read_all_labels(task, data)[:evaluated]
        predicted = np.asarray(read_predictions(read_file(path), task, evaluated), int)
    except BertDataError:
        return stale
    size = len(task.labels or ())
    if len(right) != evaluated or right.max() >= size:
        return stale
    # If the accuracy is another one than that of the evaluation, another model made the predictions.
    accuracy = evaluations[-1].get("label_accuracy")
    if accuracy is not None and abs(float((predicted == right).mean()) - accuracy) > 1e-4:
        return stale
    counts = np.zeros((size, size), int)
    np.add.at(counts, (right, predicted), 1)
    return counts


def score_classes(confusions: "np.ndarray") -> list[LabelScores]:
    """Return the scores of each label.

    confusions: counts by right label (rows) and predicted label (columns).
    """
    found = []
    for label in range(len(confusions)):
        hits = int(confusions[label, label])
        right, predicted = int(confusions[label].sum()), int(confusions[:, label].sum())
        found.append(
            LabelScores(
                examples=right,
                precision=hits / predicted if predicted else None,
                recall=hits / right if right else None,
                f1=2 * hits / (right + predicted) if right + predicted else None,
            )
        )
    return found


def _make_scores_table(names: Sequence[str], scores: Sequence[LabelScores]) -> DataTable:
    """Return the table of precision, recall and F1 of each label, with their means in the last row."""
    rows: list[tuple[Value, ...]] = [
        (name, one.examples, *map(_to_percent, one[1:])) for name, one in zip(names, scores, strict=True)
    ]
    means = []
    for column in range(1, 4):
        known = [one[column] or 0.0 for one in scores if one.examples]
        means.append(_to_percent(sum(known) / len(known) if known else None))
    rows.append(("mean over the labels", sum(one.examples for one in scores), *means))
    return DataTable(
        "Scores by label",
        ("label", "examples", "precision (%)", "recall (%)", "F1 (%)"),
        tuple(rows),
        "Precision: share of the predictions of a label that are right. Recall: share of the examples of a "
        "label that are found. F1: their harmonic mean. The means give each label that occurs the same "
        "weight, and a label that is never predicted has a precision of 0 in them.",
        page_rows=_PAGE_ROWS,
    )


def _make_confusions_table(names: Sequence[str], confusions: "np.ndarray") -> DataTable:
    """Return a table of the most frequent wrong predictions, for too many labels for a matrix."""
    wrong = [
        (names[right], names[predicted], int(confusions[right, predicted]))
        for right in range(len(names))
        for predicted in range(len(names))
        if right != predicted and confusions[right, predicted]
    ]
    rows = tuple(sorted(wrong, key=lambda row: -row[2])[:_MOST_CONFUSIONS])
    columns = ("right label", "predicted", "examples")
    return DataTable("Most frequent confusions", columns, rows, page_rows=_PAGE_ROWS)


def _to_percent(share: float | None) -> float | None:
    """Return a share in per cent."""
    return None if share is None else 100 * share
