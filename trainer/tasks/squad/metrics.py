"""The official metrics of SQuAD 1.1 and 2.0: exact match and F1, in per cent."""

import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from trainer.tasks.squad.reading import Question

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


@lru_cache(maxsize=1 << 16)
def normalise_answer(text: str) -> str:
    """Return the text in lower case, without ASCII punctuation and articles, with single
    blanks between its words.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def score_exact_match(prediction: str, gold: str) -> float:
    """Return 1.0 if both texts are equal after ``normalise_answer``, otherwise 0.0."""
    return float(normalise_answer(prediction) == normalise_answer(gold))


def compute_f1(prediction: str, gold: str) -> float:
    """Return the F1 of two texts' words. A word that occurs several times counts several times."""
    found, wanted = normalise_answer(prediction).split(), normalise_answer(gold).split()
    same = sum((Counter(found) & Counter(wanted)).values())
    if same == 0:
        return 0.0
    precision, recall = same / len(found), same / len(wanted)
    return 2 * precision * recall / (precision + recall)


def score_answers(questions: Sequence[Question], predictions: Mapping[str, str]) -> dict[str, float]:
    """Return exact_match and f1 over all questions, as in version 1.1.

    A question without a prediction scores 0.

    The score of a question is the best score over its correct answers. It must have at least one.
    """
    totals = {"exact_match": 0.0, "f1": 0.0}
    for question in questions:
        if question.id in predictions:
            found = predictions[question.id]
            totals["exact_match"] += max(score_exact_match(found, gold) for gold in question.golds)
            totals["f1"] += max(compute_f1(found, gold) for gold in question.golds)
    return {name: 100.0 * total / len(questions) for name, total in totals.items()}


def score_answers_or_none(
    questions: Sequence[Question],
    predictions: Mapping[str, str],
    no_answer: Mapping[str, float] | None = None,
    threshold: float = 1.0,
) -> dict[str, float]:
    """Return the metrics of version 2.0 over all questions that have a prediction.

    They are also computed separately for the questions with an answer and for those without. Correct
    answers that are empty after ``normalise_answer`` do not count. If a question has no other correct
    answers, its answer is "".
    no_answer: for each predicted question, a number that grows with the probability that it has no answer.
        The result then also has the best thresholds for this number, and the scores best_exact and best_f1
        that they reach.
    threshold: if ``no_answer`` is above this number, the prediction counts as "".
    """
    answered = {one.id: bool(one.golds) for one in questions if one.id in predictions}
    scores = _score_predictions(questions, predictions, answered)
    best: dict[str, float] = {}
    if no_answer is not None:
        without = sum(not one.golds for one in questions)
        for name, raw in scores.items():
            found = find_best_threshold(predictions, raw, no_answer, answered, without)
            best |= {f"best_{name}": found[0], f"best_{name}_thresh": found[1]}
            scores[name] = {
                one: float(not answered[one]) if no_answer[one] > threshold else score
                for one, score in raw.items()
            }
    return _average_scores(scores, answered) | best


def score_no_answers(questions: Sequence[Question]) -> dict[str, float]:
    """Return the metrics of version 2.0 if the prediction for every question is that it has no answer."""
    return score_answers_or_none(questions, {question.id: "" for question in questions})


def _score_predictions(
    questions: Sequence[Question], predictions: Mapping[str, str], answered: Mapping[str, bool]
) -> dict[str, dict[str, float]]:
    """Return the exact match and F1 of each question with a prediction.

    No threshold has yet turned predictions into "no answer".
    answered: for each question, whether it has an answer.
    """
    golds = {one.id: [g for g in one.golds if normalise_answer(g)] or [""] for one in questions}
    measures: dict[str, Callable[[str, str], float]] = {
        "exact": score_exact_match,
        "f1": _compute_f1_of_any_texts,
    }
    return {
        name: {one: max(measure(predictions[one], gold) for gold in golds[one]) for one in answered}
        for name, measure in measures.items()
    }


def find_best_threshold(
    predictions: Mapping[str, str],
    scores: Mapping[str, float],
    no_answer: Mapping[str, float],
    answered: Mapping[str, bool],
    without: int,
) -> tuple[float, float]:
    """Return the best score in per cent that a threshold on ``no_answer`` can reach, and the
    lowest such threshold.

    scores: score of each question's prediction.
    no_answer: for each question, a number that grows with the probability that it has no answer.
    answered: for each question with a score, whether it has an answer.
    without: number of questions in the file that have no answer.
    """
    # Start with a threshold below all numbers. Every prediction then counts as "", so only questions without
    # an answer score. Raise the threshold past the number of one question at a time, so that this question's
    # prediction counts. If the question has an answer, the prediction's score is added. If it has none, its
    # point is lost, unless the prediction is "" too.
    score = best = float(without)
    threshold = 0.0
    for one in sorted(no_answer, key=no_answer.__getitem__):
        if one not in scores:
            continue
        if answered[one]:
            score += scores[one]
        elif predictions[one]:
            score -= 1
        if score > best:
            best, threshold = score, no_answer[one]
    return 100.0 * best / len(scores), threshold


def _average_scores(
    scores: Mapping[str, Mapping[str, float]], answered: Mapping[str, bool]
) -> dict[str, float]:
    """Return the mean of each metric in per cent, over all questions, and over those with
    and without an answer.

    Names of metrics over questions with an answer have the prefix HasAns_, over questions
    without an answer NoAns_.
    """
    result: dict[str, float] = {}
    for prefix, wanted in (("", None), ("HasAns_", True), ("NoAns_", False)):
        chosen = [one for one, has in answered.items() if wanted is None or has is wanted]
        if chosen or not prefix:
            for name, found in scores.items():
                result[prefix + name] = 100.0 * sum(found[one] for one in chosen) / max(1, len(chosen))
            result[f"{prefix}total"] = len(chosen)
    return result


def _compute_f1_of_any_texts(prediction: str, gold: str) -> float:
    """Return the F1 of two texts.

    If one has no words, return 1.0 if the other has none either, otherwise 0.0.
    """
    found, wanted = normalise_answer(prediction), normalise_answer(gold)
    return compute_f1(prediction, gold) if found and wanted else float(found == wanted)
