"""Predictions from logits against the files of Google's and NVIDIA's programs."""

import hashlib
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.config.dialects import DIALECTS, find_dialect
from bertdata.errors import SettingsError
from bertdata.tokens.basic import split_words
from tests.support.squad_kit import line, made_up_logits, make_case, md5_of_lines, parse_case, read_oracle
from tests.support.strategies import odd_words, plain_words, tries
from trainer.config.sections.finetuning import FinetuningSection
from trainer.tasks.squad.answers import (
    extract_answer_text,
    format_prediction_files,
    predict_answers,
    select_best_logits,
)

EN_384, EN_96 = "xquad.en__s384__d128__q64", "xquad.en__s96__d32__q24"
DE_256 = "xquad.de__s256__d96__q40"
CASES = [
    (EN_384, "seed0"),
    pytest.param(EN_96, "seed0", marks=pytest.mark.thorough),
    pytest.param(DE_256, "seed3", marks=pytest.mark.thorough),
    pytest.param(EN_96, "seed7__ties", marks=pytest.mark.thorough),
    (EN_96, "seed7__ties__v2"),
]
EDGES = (
    "edge_predict__s96__d32__q24",
    "edge_predict__s384__d128__q64__no-lower-case",
    "edge_train_v1__s40__d9__q12",
)


def predict(made, dialect, logits, *, negatives=False, **settings):
    start, end = made_up_logits(len(made.features), made.settings.max_seq_length, **logits)
    lower_case = made.settings.lower_case
    chosen = FinetuningSection(lower_case=lower_case, version_2_with_negative=negatives, **settings)
    best = select_best_logits(np.stack([start, end], axis=2), chosen.n_best_size)
    words = made.tokenizer.vocabulary
    return predict_answers(made.questions, made.features, best, words, chosen, dialect)


def texts(predictions):
    return {name: [one.text for one, _ in found.n_best] for name, found in predictions.items()}


@pytest.mark.parametrize("dialect", ["google", "nvidia"])
@pytest.mark.parametrize(("name", "variant"), CASES)
@pytest.mark.thorough_after_first
def test_answers_and_n_best_lists_are_the_originals(kit, name, variant, dialect):
    oracle = read_oracle(kit, f"nbest__{dialect}__{name}__{variant}")
    made = make_case(kit, parse_case(name, dialect))
    negatives = "v2" in variant
    found = predict(made, dialect, oracle["logits"], negatives=negatives)
    files = format_prediction_files(found, negatives=negatives)
    data = files["predictions.json"]
    assert hashlib.md5(data.encode()).hexdigest() == oracle["predictions_file_md5"]
    assert (
        md5_of_lines(line([key, value]) for key, value in texts(found).items()) == oracle["nbest_texts_md5"]
    )
    whole = kit / "squad" / f"predictions__google__{name}__{variant}.json"
    assert data == whole.read_text(encoding="utf-8")
    first = oracle["nbest_first_20"]
    if isinstance(first, dict):
        written = json.loads(files["nbest_predictions.json"])
        assert len(first) == 20
        for key, expected in first.items():
            assert written[key] == [
                {**one, "probability": pytest.approx(one["probability"], rel=1e-12)} for one in expected
            ]
            assert list(written[key][0]) == ["text", "probability", "start_logit", "end_logit"]
    if "null_odds_first_20" in oracle:
        odds = json.loads(format_prediction_files(found, negatives=True)["null_odds.json"])
        assert {key: odds[key] for key in oracle["null_odds_first_20"]} == oracle["null_odds_first_20"]


@pytest.mark.parametrize("dialect", ["google", "nvidia"])
@pytest.mark.parametrize("name", EDGES)
def test_answers_in_unusual_text_are_the_originals(kit, name, dialect):
    oracle = read_oracle(kit, f"edge__{dialect}")[name]
    made = make_case(kit, parse_case(name, dialect))
    found = predict(made, dialect, oracle["logits"])
    assert {key: one.answer for key, one in found.items()} == oracle["predictions"]
    assert texts(found) == oracle["nbest_texts"]
    assert list(found) == list(oracle["predictions"])


def test_the_files_have_the_originals_names(kit):
    oracle = read_oracle(kit, f"nbest__google__{EN_384}__seed0")
    made = make_case(kit, parse_case(EN_384, "google"))
    found = predict(made, "google", oracle["logits"])
    files = format_prediction_files(found, negatives=False)
    assert sorted(files) == ["nbest_predictions.json", "predictions.json"]
    data = files["predictions.json"].encode("ascii")
    assert hashlib.md5(data).hexdigest() == oracle["predictions_file_md5"]
    odds = json.loads(format_prediction_files(found, negatives=True)["null_odds.json"])
    assert list(odds) == [question.id for question in made.questions]


def test_the_threshold_decides_between_an_answer_and_none(kit):
    made = make_case(kit, parse_case("edge_predict__s96__d32__q24", "google"))
    logits = {"seed": 2, "ties": True}
    never = predict(made, "google", logits, negatives=True, null_score_diff_threshold=1e9)
    always = predict(made, "google", logits, negatives=True, null_score_diff_threshold=-1e9)
    with_features = {made.questions[one.example].id for one in made.features}
    assert len(with_features) < len(made.questions)
    for question in made.questions:
        assert always[question.id].answer == ""
        if question.id in with_features:
            assert never[question.id].answer != ""
            assert [one.text for one, _ in never[question.id].n_best].count("") == 1


def test_a_context_without_tokens_is_answered_as_each_program_does(kit):
    for dialect, expected in (("google", {"empty"}), ("nvidia", set())):
        made = make_case(kit, parse_case("edge_predict__s96__d32__q24", dialect))
        found = predict(made, dialect, {"seed": 2, "ties": True})
        with_features = {made.questions[one.example].id for one in made.features}
        without = [one.id for one in made.questions if one.id not in with_features]
        assert len(without) == 2
        assert {found[one].answer for one in without if one in found} == expected


@given(st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0, -3.0]), min_size=9, max_size=9), max_size=4))
def test_the_best_positions_are_sorted_stably(rows):
    logits = np.array(rows, np.float32).reshape(-1, 9)
    places_of_rows = select_best_logits(np.stack([logits, logits], axis=2), 4)[:, 0, :-1].tolist()
    for row, places in zip(logits.tolist(), places_of_rows, strict=True):
        assert places == sorted(range(9), key=lambda place: -row[place])[:4]


def plain_answer_text(tokens, words, dialect, lower_case):
    """The alignment character by character, through the places of all characters that are no blanks."""
    joined = " ".join(tokens).replace(" ##", "").replace("##", "")
    wanted, whole = " ".join(joined.split()), " ".join(words)
    normal = " ".join(split_words(whole, dialect, lower_case))
    start = normal.find(wanted)
    if start < 0:
        return whole
    from_whole = [place for place, character in enumerate(whole) if character != " "]
    from_normal = [place for place, character in enumerate(normal) if character != " "]
    last = start + len(wanted) - 1
    if len(from_whole) != len(from_normal) or start not in from_normal or last not in from_normal:
        return whole
    return whole[from_whole[from_normal.index(start)] : from_whole[from_normal.index(last)] + 1]


words = st.one_of(plain_words, odd_words, st.sampled_from(["Café,", "U.S.", "naïve", "東京で", "\xad"]))
context_words = words.map(lambda word: "".join(word.split(" "))).filter(bool)


@st.composite
def answers(draw):
    chosen = draw(st.lists(context_words, min_size=1, max_size=5))
    dialect, lower_case = draw(st.sampled_from(sorted(DIALECTS))), draw(st.booleans())
    tokens = split_words(" ".join(chosen), find_dialect(dialect), lower_case)
    start = draw(st.integers(0, len(tokens)))
    part = tokens[start : draw(st.integers(start, len(tokens)))]
    changed = draw(st.sampled_from([part, part, ["##" + one for one in part], [*part, "zz"], ["##"]]))
    return changed, chosen, find_dialect(dialect), lower_case


@tries(5)
@given(answers())
def test_answers_are_aligned_as_character_by_character(case):
    assert extract_answer_text(*case) == plain_answer_text(*case)


def test_settings_out_of_range_are_refused(kit):
    with pytest.raises(SettingsError, match="n_best_size is 0, expected 1 or more"):
        FinetuningSection(n_best_size=0)
    with pytest.raises(SettingsError, match="dialect 'bing' is not known"):
        predict(make_case(kit, parse_case(EDGES[0], "google")), "bing", {"seed": 2, "ties": True})
