"""Predictions of a classification in a file, as run_glue.py and run_classifier.py write them."""

from collections.abc import Sequence

from bertdata.errors import InputError
from trainer.extensions.finetuning.classification.presets import ClassificationTask
from trainer.extensions.finetuning.labelled_text import decode_text

_HEADING = "index\tprediction"


def predictions_text(predicted: Sequence[int | float], task: ClassificationTask) -> str:
    """A heading, then number and prediction of each example, between them a tab; labels by name."""
    names = task.labels
    lines = [_HEADING]
    for number, value in enumerate(predicted):
        lines.append(f"{number}\t{names[int(value)] if names else f'{value:.3f}'}")
    return "\n".join(lines) + "\n"


def parse_predictions(
    data: bytes, name: str, task: ClassificationTask, count: int
) -> list[int] | list[float]:
    """The predicted label numbers, or scores, of ``count`` examples in order.

    Three forms: a heading ``index prediction`` and such rows (run_glue.py); one label or score a line; a
    probability for each label a line (run_classifier.py), of which the largest counts. InputError names the
    line.
    """
    lines = decode_text(data, name, "predictions, one a line").splitlines()
    indexed = bool(lines) and lines[0] == _HEADING
    rows = [(f"{name}: line {n}", line.split("\t")) for n, line in enumerate(lines, 1) if line][indexed:]
    if len(rows) != count:
        raise InputError(f"{name}: holds {len(rows)} predictions, expected {count}, one for each example")
    if indexed:
        rows = [(where, _without_index(row, number, where)) for number, (where, row) in enumerate(rows)]
    if task.regression:
        return [_number(_single(row, where), where) for where, row in rows]
    return [_label(row, where, task.labels or ()) for where, row in rows]


def _without_index(row: list[str], number: int, where: str) -> list[str]:
    if row[0] != str(number):
        raise InputError(f"{where}: has the index {row[0]!r}, expected {number}")
    return row[1:]


def _label(row: list[str], where: str, labels: Sequence[str]) -> int:
    if len(row) == len(labels) > 1:
        probabilities = [_number(value, where) for value in row]
        return probabilities.index(max(probabilities))
    found = _single(row, where)
    if found not in labels:
        raise InputError(f"{where}: predicts {found!r}, expected one of {', '.join(labels)}")
    return labels.index(found)


def _single(row: list[str], where: str) -> str:
    if len(row) != 1:
        raise InputError(f"{where}: has {len(row)} predictions, expected 1")
    return row[0]


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{where}: holds {text!r}, expected a number") from None
