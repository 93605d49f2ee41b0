"""Answers from logits: the n best of each question, as Google's and as NVIDIA's run_squad.py find them."""

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
from trainer.tasks.squad.features import Feature
from trainer.tasks.squad.places import text_by_places
from trainer.tasks.squad.reading import Question


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
    best: Array,
    vocabulary: Vocabulary,
    settings: FinetuningSection,
    dialect: str = "google",
) -> dict[str, Prediction]:
    """The prediction of each question by its id.

    best: of each feature the output of best_logits, n_best_size of them. dialect: google or nvidia, whose way
    it is done in. A question without a feature gets the text ``empty`` in Google's way, and is left out in
    NVIDIA's. With version_2_with_negative a question has no answer where the score of position 0 is more
    than null_score_diff_threshold above the best answer's.
    """
    is_nvidia = dialect == "nvidia"
    search = _Search(features, best, vocabulary, settings, find_dialect(dialect), is_nvidia)
    groups: list[list[int]] = [[] for _ in questions]
    for row, feature in enumerate(features):
        groups[feature.example].append(row)
    nulls = [search.null(rows) for rows in groups]
    last = next((null for null in reversed(nulls) if null is not None), None)
    return {
        question.id: _finish(search.best(rows, last if is_nvidia else null), null, settings)
        for question, rows, null in zip(questions, groups, nulls, strict=True)
        if rows or not is_nvidia
    }


def best_logits(logits: Array, count: int) -> Array:
    """(features, 2 x 2, count + 1): places and logits of the best starts, then of the best ends.

    logits: (features, S, 2), float32, padding included. The best first, and the lower place among equals.
    The last column is position 0.
    """
    parts = []
    for side in np.moveaxis(logits, 2, 0):
        places = np.argsort(-side, axis=1, kind="stable")[:, :count]
        places = np.append(places, np.zeros((len(side), 1), places.dtype), axis=1)
        parts += [places, np.take_along_axis(side, places, axis=1)]
    # -inf is no JSON; no logit of a model comes near
    return np.maximum(np.stack(parts, axis=1).astype(np.float64), np.finfo(np.float32).min)


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """The features of a file and the best logits of each. A row is a feature."""

    features: Sequence[Feature]
    logits: Array
    vocabulary: Vocabulary
    settings: FinetuningSection
    dialect: Dialect
    is_nvidia: bool

    def null(self, rows: list[int]) -> Scored | None:
        """No answer, with the logits of position 0 in the row where their sum is smallest."""
        if not rows or not self.settings.version_2_with_negative:
            return None
        scored = [Scored("", start, end) for start, end in self.logits[rows, 1::2, -1].tolist()]
        return min(scored, key=attrgetter("score"))

    def best(self, rows: list[int], null: Scored | None) -> list[Scored]:
        """The n best texts of a question, without duplicates, with the null one in its place.

        In Google's way over all features, and the null text is added at the end where it is not among them.
        In NVIDIA's of each feature, merged and cut to n: a text may occur twice; null, which is that of the
        last question of the file, may be cut off.
        """
        found: dict[tuple[int, str], Scored] = {}
        for row, scored in self._by_score(rows, null):
            if len(found) == self.settings.n_best_size:
                break
            found.setdefault((row if self.is_nvidia else 0, scored.text), scored)
        if null is not None and not self.is_nvidia:
            found.setdefault((0, ""), null)
        return list(found.values())

    def _by_score(self, rows: list[int], null: Scored | None) -> Iterator[tuple[int, Scored]]:
        """Row and text of each candidate, best first, equals in their order. Null comes after its equals.

        The row of null is -1. Texts are found one by one, as few of them are asked for.
        """
        if not rows:
            return
        found = np.concatenate([self._candidates(row) for row in rows], axis=1)
        if null is not None:
            found = np.append(found, [[-1], [0], [0], [null.start_logit], [null.end_logit]], axis=1)
        for place in np.argsort(-(found[3] + found[4]), kind="stable").tolist():
            row, start, end, *logits = found[:, place].tolist()
            text = self._text(int(row), int(start), int(end)) if row >= 0 else ""
            yield int(row), Scored(text, *logits)

    def _candidates(self, row: int) -> Array:
        """(5, n): row, start, end and both logits of each pair of a best start and end that is an answer.

        It has at most max_answer_length tokens, all of the span, and its start has its maximum context there.
        In the order of the starts' ranks, then of the ends'.
        """
        span, document = self.features[row].span, self.features[row].document
        starts, ends = (
            side.compress((side[0] >= document) & (side[0] < document + span.length), axis=1)
            for side in (self.logits[row, :2, :-1], self.logits[row, 2:, :-1])
        )
        starts = starts.compress(span.is_max_context[starts[0].astype(int) - document], axis=1)
        tokens = ends[0] - starts[0][:, None] + 1
        first, last = np.nonzero((tokens >= 1) & (tokens <= self.settings.max_answer_length))
        rows = np.full(len(first), float(row))
        return np.array([rows, starts[0, first], ends[0, last], starts[1, first], ends[1, last]])

    def _text(self, row: int, start: int, end: int) -> str:
        """The text of the answer from position start to end of the feature."""
        feature = self.features[row]
        offset, places = feature.span.first - feature.document, feature.context.places
        if places is not None:
            return text_by_places(feature.question.context, places, start + offset, end + offset)
        ids = feature.context.ids[start + offset : end + offset + 1]
        words = feature.question.context.words
        return answer_text(
            [self.vocabulary.words[token] for token in ids],
            words[feature.word(start) : feature.word(end) + 1],
            self.dialect,
            self.settings.lower_case is not False,
        )


def _finish(found: list[Scored], null: Scored | None, settings: FinetuningSection) -> Prediction:
    """The prediction of the n best. ``empty`` stands where there is none."""
    found = found or [Scored("empty", 0.0, 0.0)]
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
    normalized = " ".join(text for word in words if (text := _normal(word, dialect, lower_case)))
    start = normalized.find(wanted)
    places = [place for place, character in enumerate(whole) if character != " "]
    if not wanted or start < 0 or len(normalized) - normalized.count(" ") != len(places):
        return whole
    first = start - normalized.count(" ", 0, start)
    last = first + len(wanted) - wanted.count(" ") - 1
    return whole[places[first] : places[last] + 1]


@lru_cache(maxsize=1 << 16)
def _normal(word: str, dialect: Dialect, lower_case: bool) -> str:
    """The tokeniser's words of one of the context's words, blanks between them."""
    return " ".join(split_words(word, dialect, lower_case))


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
