"""Scores of answers in a file by the official metrics of SQuAD."""

import math
from collections.abc import Sequence
from typing import Any

from bertdata.errors import InputError
from bertdata.io import storage
from trainer.extensions.finetuning.labelled_text import decode_text, parse_json
from trainer.extensions.finetuning.squad.metrics import score_answers, score_answers_or_none
from trainer.extensions.finetuning.squad.reading import read_squad
from trainer.extensions.finetuning.task_data import Scores


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
        return score_answers_or_none(found.questions, texts, numbers, threshold), warnings
    negatives = negatives or not all(question.golds for question in found.questions)
    score = score_answers_or_none if negatives else score_answers
    return score(found.questions, texts), warnings


def _read_numbers(path: str, questions: Sequence[str]) -> dict[str, float]:
    """The number of each question by its id, in the file's order. The file must have all these questions."""
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
    value: Any = parse_json(text, path, expected)
    if not isinstance(value, dict):
        raise InputError(f"{path}: is no JSON object, expected {expected}")
    return value
