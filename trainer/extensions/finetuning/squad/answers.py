"""Answers from logits: the n best of each question, as Google's and as NVIDIA's run_squad.py find them."""

import json
import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from bertdata.config.dialects import Dialect, find_dialect
from bertdata.config.settings import check
from bertdata.records import Vocabulary
from bertdata.tokens.basic import split_words
from trainer.extensions.finetuning.squad.candidates import Candidates, best_positions, find_candidates
from trainer.extensions.finetuning.squad.features import Feature
from trainer.extensions.finetuning.squad.reading import Question

Array = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerSettings:
    """Settings of predictions.

    n_best_size: answers that are kept, and starts and ends that are looked at. max_answer_length: in tokens.
    negatives: a question may have no answer (version 2.0); it has none where the score of position 0 is
    more than null_score_diff_threshold above the best answer's.
    """

    n_best_size: int = 20
    max_answer_length: int = 30
    negatives: bool = False
    null_score_diff_threshold: float = 0.0
    dialect: str = "google"
    lower_case: bool = True

    def __post_init__(self) -> None:
        for name in ("n_best_size", "max_answer_length"):
            check(getattr(self, name) >= 1, f"{name} is {getattr(self, name)}, expected 1 or more")
        find_dialect(self.dialect)


@dataclass(frozen=True, slots=True)
class Scored:
    """A text with its logits. An empty text is no answer."""

    text: str
    start_logit: float
    end_logit: float

    @property
    def score(self) -> float:
        return self.start_logit + self.end_logit


@dataclass(frozen=True, slots=True)
class Prediction:
    """A question's answer, its n best with their probabilities, and with negatives the odds of none."""

    answer: str
    n_best: list[tuple[Scored, float]]
    null_odds: float | None = None


def predict_answers(
    questions: Sequence[Question],
    features: Sequence[Feature],
    start_logits: Array,
    end_logits: Array,
    vocabulary: Vocabulary,
    settings: AnswerSettings,
) -> dict[str, Prediction]:
    """The prediction of each question by its id.

    start_logits, end_logits: (features, S), float32, rows in the order of the features. A question without a
    feature gets the text ``empty`` in Google's way, and is left out in NVIDIA's.
    """
    starts, ends = (best_positions(logits, settings.n_best_size) for logits in (start_logits, end_logits))
    candidates = [
        find_candidates(*of_feature, settings.max_answer_length)
        for of_feature in zip(features, starts, ends, start_logits, end_logits, strict=True)
    ]
    groups = _by_example(features, len(questions))
    nulls = [_null(rows, start_logits, end_logits) if settings.negatives else None for rows in groups]
    find_texts = _Texts(features, questions, vocabulary, settings)
    is_nvidia = settings.dialect == "nvidia"
    last = next((null for null in reversed(nulls) if null is not None), None)
    return {
        question.id: _finish(_best(rows, candidates, find_texts, last if is_nvidia else null), null, settings)
        for question, rows, null in zip(questions, groups, nulls, strict=True)
        if rows or not is_nvidia
    }


def _by_example(features: Sequence[Feature], questions: int) -> list[list[int]]:
    """The numbers of each question's features."""
    groups: list[list[int]] = [[] for _ in range(questions)]
    for number, feature in enumerate(features):
        groups[feature.example].append(number)
    return groups


def _null(rows: Iterable[int], start_logits: Array, end_logits: Array) -> Scored | None:
    """No answer, with the logits of position 0 in the feature where their sum is smallest."""
    scored = [Scored("", float(start_logits[row, 0]), float(end_logits[row, 0])) for row in rows]
    return min(scored, key=attrgetter("score"), default=None)


@dataclass(frozen=True, slots=True, eq=False)
class _Texts:
    """Texts of candidates."""

    features: Sequence[Feature]
    questions: Sequence[Question]
    vocabulary: Vocabulary
    settings: AnswerSettings

    def __call__(self, row: int, start: int, end: int) -> str:
        """The text of the answer from position start to end of the feature."""
        feature = self.features[row]
        offset = feature.span.first - feature.document
        ids = feature.context.ids[start + offset : end + offset + 1]
        words = self.questions[feature.example].context.words
        return answer_text(
            [self.vocabulary.words[token] for token in ids],
            words[feature.word(start) : feature.word(end) + 1],
            find_dialect(self.settings.dialect),
            self.settings.lower_case,
        )


def _best(
    rows: list[int], candidates: list[Candidates], find_text: _Texts, null: Scored | None
) -> list[Scored]:
    """The n best texts of a question, without duplicates, with the null one in its place.

    In Google's way over all features, and the null text is added at the end where it is not among them. In
    NVIDIA's of each feature, merged and cut to n: a text may occur twice; null, which is that of the last
    question of the file, may be cut off.
    """
    settings = find_text.settings
    is_nvidia = settings.dialect == "nvidia"
    found: dict[tuple[int, str], Scored] = {}
    for row, scored in _by_score(rows, candidates, find_text, null):
        if len(found) == settings.n_best_size:
            break
        found.setdefault((row if is_nvidia else 0, scored.text), scored)
    if null is not None and not is_nvidia:
        found.setdefault((0, ""), null)
    return list(found.values())


def _by_score(
    rows: list[int], candidates: list[Candidates], find_text: _Texts, null: Scored | None
) -> Iterator[tuple[int, Scored]]:
    """Row and text of each candidate, best first, equals in their order. Null comes after its equals.

    The row of null is -1. Texts are found one by one, as few of them are asked for.
    """
    if not rows:
        return
    each = [candidates[row] for row in rows]
    owners = np.concatenate([np.full(len(one.starts), row) for row, one in zip(rows, each, strict=True)])
    starts, ends, start_logits, end_logits = (
        np.concatenate([getattr(one, name) for one in each])
        for name in ("starts", "ends", "start_logits", "end_logits")
    )
    scores = start_logits + end_logits
    if null is not None:
        scores = np.append(scores, null.score)
    for place in np.argsort(-scores, kind="stable").tolist():
        if place == len(starts):
            assert null is not None
            yield -1, null
        else:
            row = int(owners[place])
            text = find_text(row, int(starts[place]), int(ends[place]))
            yield row, Scored(text, float(start_logits[place]), float(end_logits[place]))


def _finish(found: list[Scored], null: Scored | None, settings: AnswerSettings) -> Prediction:
    """The prediction of the n best. ``empty`` stands where there is none."""
    found = found or [Scored("empty", 0.0, 0.0)]
    n_best = list(zip(found, _softmax([one.score for one in found]), strict=True))
    if not settings.negatives:
        return Prediction(found[0].text, n_best)
    best = next((one for one in found if one.text), None)
    if best is None:
        return Prediction("", n_best, 0.0)
    odds = (null.score if null else _NO_SCORE) - best.start_logit - best.end_logit
    return Prediction("" if odds > settings.null_score_diff_threshold else best.text, n_best, odds)


_NO_SCORE = 1_000_000.0
"""Google's score of no answer for a question without features."""


def _softmax(scores: list[float]) -> list[float]:
    largest = max(scores)
    exponentials = [math.exp(score - largest) for score in scores]
    total = sum(exponentials)
    return [value / total for value in exponentials]


def answer_text(tokens: list[str], words: list[str], dialect: Dialect, lower_case: bool) -> str:
    """The part of the context's words that the tokens cover, or all the words if they cannot be aligned.

    The words in tokeniser's form are searched for the joined tokens; characters other than blanks are then
    counted in both forms, which must have equally many of them (a dropped character breaks that).
    """
    joined = " ".join(tokens).replace(" ##", "").replace("##", "")
    wanted = " ".join(joined.split())
    whole = " ".join(words)
    normal = [text for word in words if (text := _normal(word, dialect, lower_case))]
    normalized = " ".join(normal)
    start = normalized.find(wanted)
    ends = list(accumulate(map(len, words)))
    if not wanted or start < 0 or len(normalized) - normalized.count(" ") != ends[-1]:
        return whole
    last = start + len(wanted) - 1
    return whole[_place(normalized, start, ends) : _place(normalized, last, ends) + 1]


@lru_cache(maxsize=1 << 16)
def _normal(word: str, dialect: Dialect, lower_case: bool) -> str:
    """The tokeniser's words of one of the context's words, blanks between them."""
    return " ".join(split_words(word, dialect, lower_case))


def _place(normalized: str, place: int, ends: list[int]) -> int:
    """The place in the joined words of the character at a place of the normalized text, blanks left out.

    ends: characters of the words up to each one's end.
    """
    number = place - normalized.count(" ", 0, place)
    return number + bisect_right(ends, number)


def prediction_files(predictions: Mapping[str, Prediction], *, negatives: bool) -> dict[str, str]:
    """The texts of run_squad.py's files, by file name. negatives: with null_odds.json.

    predictions.json has the answer of each question, nbest_predictions.json its n best with probability and
    logits, null_odds.json (version 2.0) the score of no answer less that of the best answer.
    """
    values: dict[str, dict[str, Any]] = {
        "predictions.json": {name: one.answer for name, one in predictions.items()},
        "nbest_predictions.json": {
            name: [
                {
                    "text": scored.text,
                    "probability": probability,
                    "start_logit": scored.start_logit,
                    "end_logit": scored.end_logit,
                }
                for scored, probability in one.n_best
            ]
            for name, one in predictions.items()
        },
    }
    if negatives:
        values["null_odds.json"] = {name: one.null_odds for name, one in predictions.items()}
    return {name: json.dumps(value, indent=4) + "\n" for name, value in values.items()}
