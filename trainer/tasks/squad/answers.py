"""Answers from a model's logits: for each question the n best, as in Google's and NVIDIA's run_squad.py."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any

import numpy as np

from bertdata.config.dialects import Dialect, find_dialect
from bertdata.examples.columns import Array
from bertdata.records import Vocabulary
from bertdata.tokens.basic import split_words
from trainer.config.sections.finetuning import FinetuningSection
from trainer.tasks.squad.features import SquadFeature
from trainer.tasks.squad.places import extract_text_by_places
from trainer.tasks.squad.reading import Question


@dataclass(frozen=True, slots=True)
class ScoredText:
    """A possible answer with its start logit and its end logit. The empty text stands for no answer."""

    text: str
    start_logit: float
    end_logit: float

    @property
    def score(self) -> float:
        return self.start_logit + self.end_logit


@dataclass(frozen=True, slots=True)
class PredictedAnswer:
    """The answer to a question, and its n best answers with their probabilities.

    null_odds: with version_2_with_negative, the score of having no answer minus the best answer's score.
        Otherwise None.
    """

    answer: str
    n_best: list[tuple[ScoredText, float]]
    null_odds: float | None = None


def predict_answers(
    questions: Sequence[Question],
    features: Sequence[SquadFeature],
    best: Array,
    vocabulary: Vocabulary,
    settings: FinetuningSection,
    dialect: str = "google",
) -> dict[str, PredictedAnswer]:
    """Return the prediction for each question, by the question's id.

    With version_2_with_negative, the logits of position 0 are the score of having no answer. The predicted
    answer is empty if this score exceeds the best answer's score by more than null_score_diff_threshold. A
    question without features has the answer ``empty`` in Google's program, and is left out in NVIDIA's.
    best: result of ``select_best_logits`` for the features, with n_best_size columns.
    dialect: program to follow, "google" or "nvidia".
    """
    is_nvidia = dialect == "nvidia"
    search = _AnswerSearch(features, best, vocabulary, settings, find_dialect(dialect), is_nvidia)
    groups: list[list[int]] = [[] for _ in questions]
    for row, feature in enumerate(features):
        groups[feature.example].append(row)
    nulls = [search.score_no_answer(rows) for rows in groups]
    # NVIDIA's program gives every question the no-answer score of the file's last question, in its n best
    # answers. This is probably a mistake there, and is done here too so that the results are equal.
    last = next((null for null in reversed(nulls) if null is not None), None)
    return {
        question.id: _make_prediction(search.find_best(rows, last if is_nvidia else null), null, settings)
        for question, rows, null in zip(questions, groups, nulls, strict=True)
        if rows or not is_nvidia
    }


def select_best_logits(logits: Array, count: int) -> Array:
    """Return the best start positions with their logits, and the best end positions with
    theirs, for each feature.

    The result has shape (features, 4, count + 1). The best position is first. Of equal logits, the lower
    position is first. The last column is position 0, which stands for no answer.
    logits: start and end logit of each position, with shape (features, S, 2) and type float32.
        Padding is included.
    count: number of best positions.
    """
    parts = []
    for side in np.moveaxis(logits, 2, 0):
        places = np.argsort(-side, axis=1, kind="stable")[:, :count]
        places = np.append(places, np.zeros((len(side), 1), places.dtype), axis=1)
        parts += [places, np.take_along_axis(side, places, axis=1)]
    # JSON has no -inf, so it is replaced by a number that is smaller than every logit of a real model.
    found: Array = np.maximum(np.stack(parts, axis=1).astype(np.float64), np.finfo(np.float32).min)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _AnswerSearch:
    """Search for the best answers to questions, among the features of a file.

    best: result of ``select_best_logits``. Row i belongs to feature i.
    """

    features: Sequence[SquadFeature]
    logits: Array
    vocabulary: Vocabulary
    settings: FinetuningSection
    dialect: Dialect
    is_nvidia: bool

    def score_no_answer(self, rows: list[int]) -> ScoredText | None:
        """Return the score of having no answer, among the features of a question.

        It is the sum of both logits of position 0, in the feature in which this sum is smallest. The result
        is None unless version_2_with_negative is set.
        rows: indices of the question's features.
        """
        if not rows or not self.settings.version_2_with_negative:
            return None
        scored = [ScoredText("", start, end) for start, end in self.logits[rows, 1::2, -1].tolist()]
        return min(scored, key=attrgetter("score"))

    def find_best(self, rows: list[int], null: ScoredText | None) -> list[ScoredText]:
        """Return the n best texts for a question, without duplicates.

        No answer is a candidate with its score.

        Google's program compares the candidates of all features, and adds no answer at the end if it is not
        among the n best. NVIDIA's program removes duplicates only within each feature, so a text may occur
        twice. No answer may be missing there.
        rows: indices of the question's features.
        null: the score of no answer. None if every question has an answer.
        """
        found: dict[tuple[int, str], ScoredText] = {}
        for row, scored in self._rank_candidates(rows, null):
            if len(found) == self.settings.n_best_size:
                break
            found.setdefault((row if self.is_nvidia else 0, scored.text), scored)
        if null is not None and not self.is_nvidia:
            found.setdefault((0, ""), null)
        return list(found.values())

    def _rank_candidates(self, rows: list[int], null: ScoredText | None) -> Iterator[tuple[int, ScoredText]]:
        """Yield the candidates of a question from the best to the worst, as pairs of feature index
        and text with logits.

        The candidate ``null`` (no answer) has the index -1, and comes after candidates with an equal score.
        Making a text is slow and few texts are needed, so each text is made only when it is needed.
        """
        if not rows:
            return
        found = np.concatenate([self._list_candidates(row) for row in rows], axis=1)
        if null is not None:
            found = np.append(found, [[-1], [0], [0], [null.start_logit], [null.end_logit]], axis=1)
        for place in np.argsort(-(found[3] + found[4]), kind="stable").tolist():
            row, start, end, *logits = found[:, place].tolist()
            text = self._extract_text(int(row), int(start), int(end)) if row >= 0 else ""
            yield int(row), ScoredText(text, *logits)

    def _list_candidates(self, row: int) -> Array:
        """Return the candidates in a feature, as an array (5, n) of row, start, end, start
        logit and end logit.

        A candidate is a pair of one of the best starts and one of the best ends. It must lie in the feature's
        span of the context and have at most max_answer_length tokens. No other span may give its start more
        context. The candidates are ordered by the rank of the start, then of the end.
        row: index of the feature.
        """
        span, document = self.features[row].span, self.features[row].document
        # Remove positions outside the span, which are in the question, special tokens or padding.
        starts, ends = (
            side.compress((side[0] >= document) & (side[0] < document + span.length), axis=1)
            for side in (self.logits[row, :2, :-1], self.logits[row, 2:, :-1])
        )
        # The same token occurs in several overlapping spans. It can be a start only in the span with the most
        # context.
        starts = starts.compress(span.is_max_context[starts[0].astype(int) - document], axis=1)
        # Compute the number of tokens for all pairs of a start and an end at once. It must be between 1 and
        # the maximum.
        tokens = ends[0] - starts[0][:, None] + 1
        first, last = np.nonzero((tokens >= 1) & (tokens <= self.settings.max_answer_length))
        rows = np.full(len(first), float(row))
        return np.array([rows, starts[0, first], ends[0, last], starts[1, first], ends[1, last]])

    def _extract_text(self, row: int, start: int, end: int) -> str:
        """Return the text of the context from position ``start`` to position ``end`` of feature ``row``."""
        feature = self.features[row]
        offset, places = feature.span.first - feature.document, feature.context.places
        if places is not None:
            return extract_text_by_places(feature.question.context, places, start + offset, end + offset)
        ids = feature.context.ids[start + offset : end + offset + 1]
        words = feature.question.context.words
        return extract_answer_text(
            [self.vocabulary.words[token] for token in ids],
            words[feature.word(start) : feature.word(end) + 1],
            self.dialect,
            self.settings.lower_case is not False,
        )


def _make_prediction(
    found: list[ScoredText], null: ScoredText | None, settings: FinetuningSection
) -> PredictedAnswer:
    """Return the prediction for a question from its n best answers.

    If there are none, the answer is the text ``empty``, as in the original programs.
    null: the score of no answer. None if every question has an answer.
    """
    found = found or [ScoredText("empty", 0.0, 0.0)]
    n_best = list(zip(found, _softmax([one.score for one in found]), strict=True))
    if not settings.version_2_with_negative:
        return PredictedAnswer(found[0].text, n_best)
    best = next((one for one in found if one.text), None)
    if best is None:
        return PredictedAnswer("", n_best, 0.0)
    odds = (null.score if null else _NO_ANSWER_SCORE) - best.start_logit - best.end_logit
    return PredictedAnswer("" if odds > settings.null_score_diff_threshold else best.text, n_best, odds)


_NO_ANSWER_SCORE = 1_000_000.0
"""Score of no answer that Google's program gives to a question without features."""


def _softmax(scores: list[float]) -> list[float]:
    """Return the softmax of the scores."""
    largest = max(scores)
    exponentials = [math.exp(score - largest) for score in scores]
    total = sum(exponentials)
    return [value / total for value in exponentials]


def extract_answer_text(tokens: list[str], words: list[str], dialect: Dialect, lower_case: bool) -> str:
    """Return the part of the words that the tokens cover.

    If tokens and words cannot be aligned, return all words.

    tokens: WordPiece tokens of the answer.
    words: the context's words in which these tokens lie.
    """
    # For example, tokens ["jap", "##an"] of the word "(Japan)" give wanted = "japan" and normalized = "(
    # japan )".
    joined = " ".join(tokens).replace(" ##", "").replace("##", "")
    wanted = " ".join(joined.split())
    whole = " ".join(words)
    normalized = " ".join(text for word in words if (text := _normalise_word(word, dialect, lower_case)))
    start = normalized.find(wanted)
    # Number the characters other than blanks in both forms. The k-th of `normalized` is then the k-th of
    # `whole`. This is possible only if both have equally many, which is not so if a character was dropped or
    # expanded.
    places = [place for place, character in enumerate(whole) if character != " "]
    if not wanted or start < 0 or len(normalized) - normalized.count(" ") != len(places):
        return whole
    first = start - normalized.count(" ", 0, start)
    last = first + len(wanted) - wanted.count(" ") - 1
    return whole[places[first] : places[last] + 1]


@lru_cache(maxsize=1 << 16)
def _normalise_word(word: str, dialect: Dialect, lower_case: bool) -> str:
    """Return a word as the tokeniser sees it: cut into the pieces on which WordPiece works,
    separated by blanks.
    """
    return " ".join(split_words(word, dialect, lower_case))


def format_prediction_files(predictions: Mapping[str, PredictedAnswer], *, negatives: bool) -> dict[str, str]:
    """Return the contents of run_squad.py's output files, by file name.

    predictions.json has the answer to each question. nbest_predictions.json has the n best answers
    with probabilities and logits. null_odds.json (version 2.0) has the score of no answer minus the
    best answer's score.
    negatives: whether to include null_odds.json.
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
