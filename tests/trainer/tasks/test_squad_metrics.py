"""SQuAD's official metrics."""

import json

import pytest

from trainer.tasks.data_file import DataFile, read_file
from trainer.tasks.squad.metrics import (
    compute_f1,
    normalise_answer,
    score_answers,
    score_answers_or_none,
    score_exact_match,
    score_no_answers,
)
from trainer.tasks.squad.reading import read_squad


def test_a_published_models_answers_have_their_published_scores(kit):
    questions = read_squad(read_file(str(kit / "squad" / "xquad.en.json"))).questions
    predictions = json.loads((kit / "squad" / "predictions.en.json").read_text(encoding="utf-8"))
    found = score_answers(questions, predictions)
    assert found == {"exact_match": 74.87394957983193, "f1": 86.32474793700983}
    as_version_2 = score_answers_or_none(questions, predictions)
    assert as_version_2["exact"] == found["exact_match"]
    assert as_version_2["f1"] == pytest.approx(found["f1"], rel=1e-12)
    assert as_version_2["HasAns_total"] == as_version_2["total"] == 1190
    assert "NoAns_total" not in as_version_2


def test_articles_case_punctuation_and_white_space_do_not_count():
    assert normalise_answer("  The U.S.-based\tAnt,\xa0an apple! ") == "usbased ant apple"
    assert score_exact_match("The Apple.", "an apple") == 1.0
    assert compute_f1("red green", "green blue blue") == pytest.approx(
        2 * (1 / 2) * (1 / 3) / (1 / 2 + 1 / 3)
    )
    assert compute_f1("red", "green") == 0.0


def questions_of(*entries):
    qas = [
        {"id": name, "question": "q", "answers": [{"text": text, "answer_start": 0} for text in golds]}
        for name, golds in entries
    ]
    data = {"data": [{"paragraphs": [{"context": "c", "qas": qas}]}]}
    return read_squad(
        DataFile("d.json", json.dumps(data).encode()), training=False, negatives=False
    ).questions


def test_the_best_of_several_answers_counts_and_an_unanswered_question_scores_nothing():
    questions = questions_of(("a", ["red", "blue"]), ("b", ["green"]))
    assert score_answers(questions, {"a": "Blue"}) == {"exact_match": 50.0, "f1": 50.0}


def test_questions_without_an_answer_count_apart():
    questions = questions_of(("a", ["red sky", "the"]), ("b", []), ("c", []))
    found = score_answers_or_none(questions, {"a": "sky", "b": "", "c": "x"})
    assert found["exact"] == pytest.approx(100 / 3)
    assert found["f1"] == pytest.approx(100 * (2 / 3 + 1 + 0) / 3)
    assert (found["total"], found["HasAns_total"], found["NoAns_total"]) == (3, 1, 2)
    assert (found["HasAns_exact"], found["NoAns_exact"], found["NoAns_f1"]) == (0.0, 50.0, 50.0)
    assert found["HasAns_f1"] == pytest.approx(100 * 2 / 3)
    assert score_answers_or_none(questions, {"b": ""})["total"] == 1


def test_a_guess_that_answers_nothing_is_right_where_there_is_no_answer():
    found = score_no_answers(questions_of(("a", ["red sky"]), ("b", []), ("c", []), ("d", ["the"])))
    assert (found["exact"], found["f1"]) == (75.0, 75.0)  # "the" is no word to the official rules


KINDS = (("a", ["red"]), ("b", ["blue"]), ("c", []), ("d", []))
ANSWERS = {"a": "red", "b": "blue sky", "c": "", "d": "x"}


def test_the_best_thresholds_are_those_of_the_official_definition():
    """Worked out by hand: the search starts with 2 right (c, d), then takes one question after another.

    Exact: a +1 = 3, b +0, c 0 (no answer was given), d -1. F1: a +1, b +2/3 = 3.67, c 0, d -1.
    """
    questions = questions_of(*KINDS)
    found = score_answers_or_none(questions, ANSWERS, {"d": 0.4, "b": 0.2, "c": 0.3, "a": 0.1, "other": 0.0})
    assert found["exact"] == 50.0, "no number is above 1, so the answers stand as they are"
    assert (found["best_exact"], found["best_exact_thresh"]) == (75.0, 0.1)
    assert found["best_f1"] == pytest.approx(100 * (2 + 1 + 2 / 3) / 4)
    assert found["best_f1_thresh"] == 0.2
    assert list(found)[-4:] == ["best_exact", "best_exact_thresh", "best_f1", "best_f1_thresh"]


def test_questions_above_the_threshold_count_as_having_no_answer():
    questions = questions_of(*KINDS)
    odds = {"a": -3.0, "b": 2.5, "c": -1.0, "d": 7.0}
    found = score_answers_or_none(questions, ANSWERS, odds, threshold=2.0)
    assert (found["exact"], found["HasAns_exact"], found["NoAns_exact"]) == (75.0, 50.0, 100.0)
    assert found["f1"] == 75.0, "b is above, so its part of an answer no longer counts"
    assert found["best_exact_thresh"] == -3.0
    worse = score_answers_or_none(questions, {"a": "x", "b": "x", "c": "x", "d": "x"}, odds)
    assert (worse["best_exact"], worse["best_exact_thresh"]) == (50.0, 0.0), "never better than at the start"


def test_a_question_that_is_missing_from_the_predictions_still_counts_where_it_has_no_answer():
    """As the official program does: the questions without an answer are those of the file."""
    found = score_answers_or_none(questions_of(*KINDS), {"a": "red", "b": "x"}, {"a": 0.5, "b": 0.6})
    assert (found["total"], found["best_exact"], found["best_exact_thresh"]) == (2, 150.0, 0.5)
