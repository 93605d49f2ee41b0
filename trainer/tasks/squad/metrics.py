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
    """Lower-case the text, remove ASCII punctuation, then articles, and join words with single blanks."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def score_exact_match(prediction: str, gold: str) -> float:
    """Return 1.0 if both texts are equal after normalisation, else 0.0."""
    return float(normalise_answer(prediction) == normalise_answer(gold))


def compute_f1(prediction: str, gold: str) -> float:
    """Return F1 of the two texts' words, counted with repetition."""
    found, wanted = normalise_answer(prediction).split(), normalise_answer(gold).split()
    same = sum((Counter(found) & Counter(wanted)).values())
    if same == 0:
        return 0.0
    precision, recall = same / len(found), same / len(wanted)
    return 2 * precision * recall / (precision + recall)


def score_answers(questions: Sequence[Question], predictions: Mapping[str, str]) -> dict[str, float]:
    """Return exact_match and f1 over all questions (version 1.1). A question without a prediction scores 0.

    Each question counts its best score over its gold answers, of which it needs at least one.
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
    """Return version 2.0's metrics over all questions with a prediction.

    Further metrics cover only the questions with an answer, or only the questions without.

    Gold answers that are empty after normalisation do not count. A question without other gold answers has
    the answer "".

    no_answer: for each predicted question, a number that grows with the probability that it has no answer.
    If the number is above the threshold, the prediction counts as "". The result then includes the best
    thresholds, and the scores best_exact and best_f1 that they reach.
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
    """Return version 2.0's metrics for predicting no answer to every question."""
    return score_answers_or_none(questions, {question.id: "" for question in questions})


def _score_predictions(
    questions: Sequence[Question], predictions: Mapping[str, str], answered: Mapping[str, bool]
) -> dict[str, dict[str, float]]:
    """Return exact match and F1 of each question with a prediction, before a threshold turns predictions into
    "no answer".
    """
    golds = {one.id: [g for g in one.golds if normalise_answer(g)] or [""] for one in questions}
    measures: dict[str, Callable[[str, str], float]] = {"exact": score_exact_match, "f1": _compute_f1_or_none}
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
    """Return the best score, in per cent, that a threshold on no_answer reaches, and the lowest such value.

    answered: for each question with a score, whether it has an answer.
    without: number of questions in the file that have none.
    """
    # Start with a threshold below all numbers, where every prediction is "": only questions without an answer
    # score. Raise it past one question at a time, whose prediction then counts. A question with an answer
    # adds its score. A question without one loses its point, unless its prediction is "" too.
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
    """Return the mean of each metric in per cent, over all questions and over both types of questions.

    The prefix HasAns_ means questions with an answer, NoAns_ questions without.
    """
    result: dict[str, float] = {}
    for prefix, wanted in (("", None), ("HasAns_", True), ("NoAns_", False)):
        chosen = [one for one, has in answered.items() if wanted is None or has is wanted]
        if chosen or not prefix:
            for name, found in scores.items():
                result[prefix + name] = 100.0 * sum(found[one] for one in chosen) / max(1, len(chosen))
            result[f"{prefix}total"] = len(chosen)
    return result


def _compute_f1_or_none(prediction: str, gold: str) -> float:
    """Return F1 of two texts. If a text has no words, return 1.0 if both have none, else 0.0."""
    found, wanted = normalise_answer(prediction), normalise_answer(gold)
    return compute_f1(prediction, gold) if found and wanted else float(found == wanted)
