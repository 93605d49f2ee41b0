"""SQuAD's official metrics."""

import json

import pytest

from trainer.tasks.squad.metrics import exact, f1, normalize, score_answers, score_answers_or_none
from trainer.tasks.squad.reading import parse_squad, read_squad


def test_a_published_models_answers_have_their_published_scores(kit):
    questions = read_squad(str(kit / "squad" / "xquad.en.json")).questions
    predictions = json.loads((kit / "squad" / "predictions.en.json").read_text(encoding="utf-8"))
    found = score_answers(questions, predictions)
    assert found == {"exact_match": 74.87394957983193, "f1": 86.32474793700983}
    as_version_2 = score_answers_or_none(questions, predictions)
    assert as_version_2["exact"] == found["exact_match"]
    assert as_version_2["f1"] == pytest.approx(found["f1"], rel=1e-12)
    assert as_version_2["HasAns_total"] == as_version_2["total"] == 1190
    assert "NoAns_total" not in as_version_2


def test_articles_case_punctuation_and_white_space_do_not_count():
    assert normalize("  The U.S.-based\tAnt,\xa0an apple! ") == "usbased ant apple"
    assert exact("The Apple.", "an apple") == 1.0
    assert f1("red green", "green blue blue") == pytest.approx(2 * (1 / 2) * (1 / 3) / (1 / 2 + 1 / 3))
    assert f1("red", "green") == 0.0


def questions_of(*entries):
    qas = [
        {"id": name, "question": "q", "answers": [{"text": text, "answer_start": 0} for text in golds]}
        for name, golds in entries
    ]
    data = {"data": [{"paragraphs": [{"context": "c", "qas": qas}]}]}
    return parse_squad(json.dumps(data).encode(), "d.json", training=False, negatives=False).questions


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
