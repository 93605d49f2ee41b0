"""The command ``python -m trainer score``: metrics of predictions in files."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bertdata.cli.common.parser import Parser
from bertdata.errors import InputError, UsageError
from bertdata.io import storage
from bertdata.io.terminal import say, say_error
from trainer.config.finetuning import SQUAD
from trainer.extensions.finetuning.classification.metrics import parse_predictions, score_labels
from trainer.extensions.finetuning.classification.presets import ClassificationTask
from trainer.extensions.finetuning.classification.reading import label_ids, read_pairs, with_labels
from trainer.extensions.finetuning.labelled_text import decode_text, parse_json
from trainer.extensions.finetuning.squad.metrics import score_answers, score_answers_or_none
from trainer.extensions.finetuning.squad.reading import read_squad
from trainer.extensions.finetuning.task_flags import TABLE_FLAGS, add_columns, add_task, classification_of
from trainer.run.predict_command import refuse

_EXAMPLE = """\
  python -m trainer score --task squad dev-v1.1.json predictions.json
  python -m trainer score --task squad dev-v2.0.json predictions.json --na-prob-file null_odds.json
  python -m trainer score --task mrpc dev.tsv test_results.tsv --json"""
_SUMMARY = """\
Compares predictions with a file of right answers by the task's official metrics: SQuAD's exact match and F1
in per cent, GLUE's from 0 to 1. Predictions of a table: one label a line, or with a heading and an index as
run_glue.py writes them, or a probability for each label as run_classifier.py does."""


def run(arguments: list[str]) -> None:
    """Print each metric on a line, or all as one JSON object."""
    parser = Parser("python -m trainer score", _EXAMPLE, _SUMMARY)
    parser.add_argument("data", metavar="DATA", help="SQuAD's JSON, or a table with labels")
    parser.add_argument("predictions", metavar="PREDICTIONS", help="predictions.json, or a table of labels")
    add_task(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.add_argument(
        "--version-2-with-negative",
        action="store_true",
        help="by the rules of SQuAD 2.0 (default: where a question has no answer)",
    )
    parser.add_argument(
        "--na-prob-file",
        metavar="FILE",
        help="null_odds.json, or a probability of no answer by each question's id: scores with the best "
        "thresholds are told too (SQuAD 2.0)",
    )
    parser.add_argument(
        "--na-prob-thresh",
        type=float,
        metavar="X",
        help="a question with a number above this counts as having no answer (default: 1, as the official "
        "program has it)",
    )
    add_columns(parser)
    given = parser.parse_args(arguments)
    given.task = given.task.lower()
    if given.task == SQUAD:
        refuse(given, TABLE_FLAGS)
        if given.na_prob_thresh is not None and given.na_prob_file is None:
            raise UsageError("--na-prob-thresh goes with --na-prob-file")
        scores = score_squad(
            given.data,
            given.predictions,
            negatives=given.version_2_with_negative,
            no_answer=given.na_prob_file,
            threshold=1.0 if given.na_prob_thresh is None else given.na_prob_thresh,
        )
    else:
        refuse(given, ("version_2_with_negative", "na_prob_file", "na_prob_thresh"))
        scores = score_pairs(given.data, given.predictions, classification_of(given))
    for warning in scores.warnings:
        say_error(f"trainer: warning: {warning}")
    if given.json:
        say(json.dumps(scores.metrics))
    else:
        say(*(f"{name} {value}" for name, value in scores.metrics.items()))


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


def score_pairs(path: str, predictions: str, task: ClassificationTask) -> Scores:
    """The task's metrics of a file of predictions against a table with labels."""
    found = read_pairs(path, task)
    task = with_labels(task, found)
    gold = label_ids(found.pairs, task)
    predicted = parse_predictions(storage.read_bytes(predictions), predictions, task, len(gold))
    return Scores(score_labels(task.metrics, predicted, gold), found.warnings())
