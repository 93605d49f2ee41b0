"""Answers from a model's logits: the n best for each question, as in Google's and NVIDIA's run_squad.py."""

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
    """A text with its start and end logits. An empty text means no answer."""

    text: str
    start_logit: float
    end_logit: float

    @property
    def score(self) -> float:
        return self.start_logit + self.end_logit


@dataclass(frozen=True, slots=True)
class Prediction:
    """A question's answer, and its n best answers with probabilities.

    null_odds: with version_2_with_negative, the score of no answer minus the best answer's score.
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
) -> dict[str, Prediction]:
    """Return the prediction for each question id.

    A question without features is answered with the text ``empty`` in Google's way, and left out in NVIDIA's.
    With version_2_with_negative, the logits of position 0 are the score of no answer. The answer is empty if
    this score exceeds the best answer's score by more than null_score_diff_threshold.

    best: output of ``select_best_logits`` for the features, with n_best_size columns.
    dialect: google or nvidia, the program to follow.
    """
    is_nvidia = dialect == "nvidia"
    search = _AnswerSearch(features, best, vocabulary, settings, find_dialect(dialect), is_nvidia)
    groups: list[list[int]] = [[] for _ in questions]
    for row, feature in enumerate(features):
        groups[feature.example].append(row)
    nulls = [search.score_no_answer(rows) for rows in groups]
    # NVIDIA's program puts the null score of the file's last question into every question's n best answers.
    # It looks like a slip there, and is kept here so that the results are equal.
    last = next((null for null in reversed(nulls) if null is not None), None)
    return {
        question.id: _make_prediction(search.find_best(rows, last if is_nvidia else null), null, settings)
        for question, rows, null in zip(questions, groups, nulls, strict=True)
        if rows or not is_nvidia
    }


def select_best_logits(logits: Array, count: int) -> Array:
    """Return (features, 4, count + 1): positions and logits of the best starts, then of the best ends.

    The best is first, and the lower position among equals. The last column is position 0, for no answer.
    logits: (features, S, 2) float32, padding included.
    """
    parts = []
    for side in np.moveaxis(logits, 2, 0):
        places = np.argsort(-side, axis=1, kind="stable")[:, :count]
        places = np.append(places, np.zeros((len(side), 1), places.dtype), axis=1)
        parts += [places, np.take_along_axis(side, places, axis=1)]
    # JSON has no -inf, so a number is written that is smaller than every logit of a real model.
    return np.maximum(np.stack(parts, axis=1).astype(np.float64), np.finfo(np.float32).min)


@dataclass(frozen=True, slots=True, eq=False)
class _AnswerSearch:
    """Search for the best answers among a file's features. Row i of ``best`` belongs to feature i."""

    features: Sequence[SquadFeature]
    logits: Array
    vocabulary: Vocabulary
    settings: FinetuningSection
    dialect: Dialect
    is_nvidia: bool

    def score_no_answer(self, rows: list[int]) -> ScoredText | None:
        """Return the score of no answer among a question's features (``rows``).

        It is the sum of both logits of position 0, in the feature where this sum is smallest.

        The result is None unless version_2_with_negative is set.
        """
        if not rows or not self.settings.version_2_with_negative:
            return None
        scored = [ScoredText("", start, end) for start, end in self.logits[rows, 1::2, -1].tolist()]
        return min(scored, key=attrgetter("score"))

    def find_best(self, rows: list[int], null: ScoredText | None) -> list[ScoredText]:
        """Return the n best texts for a question, without duplicates.

        The null answer takes part with its score.

        Google's way compares candidates of all features, and appends the null answer if it is not among the n
        best. NVIDIA's way removes duplicates within each feature only, so that a text may occur twice, and
        the null answer may be cut off.
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
        """Yield (row, text with its logits) of each candidate, best first.

        The answer ``null`` has the row -1, and comes after candidates with an equal score. Each text is
        made when it is needed, since making a text is slow and few are needed.
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
        """Return (5, n) candidates: row, start, end, start logit, end logit.

        A candidate is a pair of a best start and a best end that lies in the span, has at most
        max_answer_length tokens, and whose start has its maximum context in this span. Candidates are ordered
        by the rank of the start, then of the end.
        """
        span, document = self.features[row].span, self.features[row].document
        # Drop positions outside the span: the question, special tokens and padding.
        starts, ends = (
            side.compress((side[0] >= document) & (side[0] < document + span.length), axis=1)
            for side in (self.logits[row, :2, :-1], self.logits[row, 2:, :-1])
        )
        # The same token occurs in overlapping spans. Only its start in the span with the most context counts.
        starts = starts.compress(span.is_max_context[starts[0].astype(int) - document], axis=1)
        # All pairs (starts, ends) at once: number of tokens, which must be between 1 and the maximum.
        tokens = ends[0] - starts[0][:, None] + 1
        first, last = np.nonzero((tokens >= 1) & (tokens <= self.settings.max_answer_length))
        rows = np.full(len(first), float(row))
        return np.array([rows, starts[0, first], ends[0, last], starts[1, first], ends[1, last]])

    def _extract_text(self, row: int, start: int, end: int) -> str:
        """Return the text of the context that positions ``start`` to ``end`` of feature ``row`` cover."""
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
) -> Prediction:
    """Return the prediction that the n best answers make.

    If there are none, the answer is the text ``empty``, as in the original programs.
    """
    found = found or [ScoredText("empty", 0.0, 0.0)]
    n_best = list(zip(found, _softmax([one.score for one in found]), strict=True))
    if not settings.version_2_with_negative:
        return Prediction(found[0].text, n_best)
    best = next((one for one in found if one.text), None)
    if best is None:
        return Prediction("", n_best, 0.0)
    odds = (null.score if null else _NO_SCORE) - best.start_logit - best.end_logit
    return Prediction("" if odds > settings.null_score_diff_threshold else best.text, n_best, odds)


_NO_SCORE = 1_000_000.0
"""Google's score of no answer for a question without features."""


def _softmax(scores: list[float]) -> list[float]:
    """Return the softmax of the scores."""
    largest = max(scores)
    exponentials = [math.exp(score - largest) for score in scores]
    total = sum(exponentials)
    return [value / total for value in exponentials]


def extract_answer_text(tokens: list[str], words: list[str], dialect: Dialect, lower_case: bool) -> str:
    """Return the part of the words that the tokens cover, or all of the words if they cannot be aligned."""
    # Tokens ["jap", "##an"] of words ["(Japan)"]: wanted "japan", normalized "( japan )".
    joined = " ".join(tokens).replace(" ##", "").replace("##", "")
    wanted = " ".join(joined.split())
    whole = " ".join(words)
    normalized = " ".join(text for word in words if (text := _normalise_word(word, dialect, lower_case)))
    start = normalized.find(wanted)
    # Count characters other than blanks in both forms: the k-th of `normalized` is the k-th of `whole`. This
    # only works if both have the same number, which a dropped or expanded character breaks.
    places = [place for place, character in enumerate(whole) if character != " "]
    if not wanted or start < 0 or len(normalized) - normalized.count(" ") != len(places):
        return whole
    first = start - normalized.count(" ", 0, start)
    last = first + len(wanted) - wanted.count(" ") - 1
    return whole[places[first] : places[last] + 1]


@lru_cache(maxsize=1 << 16)
def _normalise_word(word: str, dialect: Dialect, lower_case: bool) -> str:
    """Return a word in the tokeniser's form: its pieces before WordPiece, separated by blanks."""
    return " ".join(split_words(word, dialect, lower_case))


def format_prediction_files(predictions: Mapping[str, Prediction], *, negatives: bool) -> dict[str, str]:
    """Return the content of run_squad.py's output files by name.

    predictions.json has the answer to each question, nbest_predictions.json the n best with probability and
    logits. null_odds.json (version 2.0) has the score of no answer minus the best answer's score.
    negatives: include null_odds.json.
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
