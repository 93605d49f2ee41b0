"""Metrics of predictions in files: what ``python -m trainer score`` does."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bertdata.errors import InputError
from bertdata.io import storage
from bertdata.io.json_text import parse_json_text
from trainer.extensions.finetuning.classification.metrics import score_labels
from trainer.extensions.finetuning.classification.prediction_file import parse_predictions
from trainer.extensions.finetuning.classification.presets import ClassificationTask
from trainer.extensions.finetuning.classification.reading import label_ids, read_pairs, with_labels
from trainer.extensions.finetuning.labelled_text import decode_text
from trainer.extensions.finetuning.squad.metrics import score_answers, score_answers_or_none
from trainer.extensions.finetuning.squad.reading import read_squad


@dataclass(frozen=True, slots=True)
class Scores:
    """Metrics by name, and warnings."""

    metrics: dict[str, float]
    warnings: list[str]


def score_squad(
    path: str,
    predictions: str,
    *,
    negatives: bool = False,
    no_answer: str | None = None,
    threshold: float = 1.0,
) -> Scores:
    """The official metrics of a predictions.json against a SQuAD file.

    Those of version 2.0 with negatives or no_answer, and where the file has a question without an answer.
    no_answer: a file with a number for each question, as null_odds.json; threshold: questions with more
    than it count as having no answer. InputError where no question has one.
    """
    found = read_squad(path)
    texts = _read_texts(predictions)
    if not any(question.golds for question in found.questions):
        raise InputError(f"{path}: gives no question an answer, so nothing can be compared with it")
    without = [one.id for one in found.questions if one.id not in texts]
    warnings = []
    if without:
        warnings.append(f"{predictions}: has no answer to {len(without)} questions, as {without[0]}")
    unknown = sorted(texts.keys() - {one.id for one in found.questions})
    if unknown:
        warnings.append(
            f"{predictions}: answers {len(unknown)} questions that {path} has not, as {unknown[0]}"
        )
    if len(unknown) == len(texts):
        raise InputError(f"{predictions}: answers no question of {path}")
    if no_answer is not None:
        numbers = _read_numbers(no_answer, [one.id for one in found.questions if one.id in texts])
        return Scores(score_answers_or_none(found.questions, texts, numbers, threshold), warnings)
    negatives = negatives or not all(question.golds for question in found.questions)
    score = score_answers_or_none if negatives else score_answers
    return Scores(score(found.questions, texts), warnings)


def _read_numbers(path: str, questions: Sequence[str]) -> dict[str, float]:
    """The number of each question by its id, in the order of the file; it must have all these questions."""
    value = _read_object(path, "a number by each question's id")
    for name, number in value.items():
        if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
            raise InputError(f"{path}: question {name}: holds {number!r:.60}, expected a number")
    missing = [one for one in questions if one not in value]
    if missing:
        raise InputError(f"{path}: has no number for {len(missing)} predicted questions, as {missing[0]}")
    return value


def _read_texts(path: str) -> dict[str, str]:
    """The answer of each question by its id."""
    value = _read_object(path, "an answer by each question's id")
    for name, text in value.items():
        if not isinstance(text, str):
            raise InputError(f"{path}: question {name}: the answer is {text!r:.60}, expected a text")
    return value


def _read_object(path: str, expected: str) -> dict[str, Any]:
    text = decode_text(storage.read_bytes(path), path, f"JSON in UTF-8 with {expected}")
    try:
        value: Any = parse_json_text(text)
    except ValueError as error:
        raise InputError(f"{path}: is not JSON: {error}; expected {expected}") from None
    if not isinstance(value, dict):
        raise InputError(f"{path}: is no JSON object, expected {expected}")
    return value


def score_pairs(path: str, predictions: str, task: ClassificationTask) -> Scores:
    """The task's metrics of a file of predictions against a table with labels."""
    found = read_pairs(path, task)
    task = with_labels(task, found)
    gold = label_ids(found.pairs, task)
    predicted = parse_predictions(storage.read_bytes(predictions), predictions, task, len(gold))
    return Scores(score_labels(task.metrics, predicted, gold), found.warnings())
