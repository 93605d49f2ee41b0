"""SQuAD's features against those of Google's and NVIDIA's programs."""

import hashlib
import json
from array import array
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.shards.example_proto import encode_example
from bertdata.shards.framing import frame_payload
from tests.support.squad_kit import (
    Made,
    flat_entries,
    line,
    make_case,
    md5_of_lines,
    parse_case,
    read_oracle,
    read_questions,
    tokenizer_of,
)
from tests.support.strategies import tries
from trainer.tasks.data_file import DataFile
from trainer.tasks.squad.features import (
    compute_span_bounds,
    make_features,
    make_spans,
    pad_feature,
    shuffle_questions,
)
from trainer.tasks.squad.reading import read_squad

INPUTS = ("xquad.en__s384__d128__q64", "xquad.en__s96__d32__q24", "xquad.de__s256__d96__q40")
EDGES = (
    "edge_train_v1__s96__d32__q24__training",
    "edge_train__s128__d40__q32__v2__training",
    "edge_predict__s96__d32__q24",
    "edge_predict__s384__d128__q64__no-lower-case",
    "edge_train_v1__s40__d9__q12",
)
DIALECTS = ("google", "nvidia")
SOME_THOROUGH = [INPUTS[0], *(pytest.param(name, marks=pytest.mark.thorough) for name in INPUTS[1:])]
"""The inputs with the most features are left to make test-thorough: EDGES has the same sizes and odd text."""


def values_of(made):
    return [
        pad_feature(one, made.tokenizer.vocabulary, made.settings.max_seq_length) for one in made.features
    ]


def assert_same_fields(values, oracle):
    """The lines hold all fields; where they differ, the fields' digests name the one at fault."""
    assert len(values) == oracle["features"]
    if md5_of_lines(map(line, values)) != oracle["md5"]:
        found = {key: md5_of_lines(line(value[key]) for value in values) for key in oracle["field_md5"]}
        assert found == oracle["field_md5"]
        raise AssertionError("each field is the original's, but the lines are not")


@pytest.mark.parametrize("mode", ["training", "prediction"])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", SOME_THOROUGH)
@pytest.mark.thorough_after_first
def test_features_of_a_development_set_are_the_originals(kit, name, dialect, mode):
    oracle = read_oracle(kit, f"features__{dialect}__{name}")[mode]
    made = make_case(kit, parse_case(name, dialect, training=mode == "training"))
    values = values_of(made)
    assert len(made.questions) == oracle["examples"]
    assert_same_fields(values, oracle)
    for sample in oracle.get("samples", ()):
        value = values[sample["unique_id"] - 1_000_000_000]
        assert hashlib.md5(line(value)[:-1].encode()).hexdigest() == sample["line_md5"]
    if "out_of_span_features" in oracle:
        outside = sum((one.start, one.end) == (0, 0) for one in made.features)
        assert outside == oracle["out_of_span_features"]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", EDGES)
def test_features_of_unusual_text_are_the_originals(kit, name, dialect):
    oracle = read_oracle(kit, f"edge__{dialect}")[name]
    made = make_case(kit, parse_case(name, dialect))
    assert [question.id for question in made.questions] == oracle["questions"]
    assert_same_fields(values_of(made), oracle)


@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize("lines", [False, True], ids=["one list", "lines"])
def test_features_of_the_same_questions_in_flat_form_are_the_same(kit, name, lines):
    oracle, case = read_oracle(kit, "edge__google")[name], parse_case(name, "google")
    nested = json.loads((kit / "squad" / f"{case.input}.json").read_text(encoding="utf-8"))
    entries = flat_entries(nested)
    if "v2" in case.words:
        assert sum(entry.pop("is_impossible", False) for entry in entries), "the form needs no mark"
    text = "\n".join(map(json.dumps, entries)) if lines else json.dumps({"data": entries})
    settings, tokenizer = case.settings, tokenizer_of(kit, case.settings)
    found = read_squad(
        DataFile("flat", text.encode()),
        training=settings.training,
        negatives=settings.version_2_with_negative,
    )
    made = Made(found.questions, make_features(found.questions, tokenizer, settings), tokenizer, settings)
    assert [question.id for question in found.questions] == oracle["questions"]
    assert_same_fields(values_of(made), oracle)


@pytest.mark.parametrize("name", SOME_THOROUGH)
@pytest.mark.thorough
def test_google_shuffles_the_questions_before_it_makes_features(kit, name):
    oracle = read_oracle(kit, f"features__google__{name}")["training_shuffled"]
    case = parse_case(name, "google", training=True)
    questions = shuffle_questions(read_questions(kit, case).questions)
    tokenizer = tokenizer_of(kit, case.settings)
    features = make_features(questions, tokenizer, case.settings)
    values = values_of(Made(questions, features, tokenizer, case.settings))
    assert md5_of_lines(map(line, values)) == oracle["md5"]
    record = oracle["train.tf_record"]
    data = records(
        features, tokenizer.vocabulary, case.settings.max_seq_length, ("start_positions", "end_positions")
    )
    assert (len(data), hashlib.md5(data).hexdigest()) == (record["bytes"], record["content_md5"])


@pytest.mark.parametrize("name", SOME_THOROUGH)
def test_the_records_for_prediction_are_googles(kit, name):
    record = read_oracle(kit, f"features__google__{name}")["prediction"]["eval.tf_record"]
    made = make_case(kit, parse_case(name, "google"))
    data = records(made.features, made.tokenizer.vocabulary, made.settings.max_seq_length, ())
    assert (len(data), hashlib.md5(data).hexdigest()) == (record["bytes"], record["content_md5"])


def records(features, vocabulary, length, positions) -> bytes:
    """Google's TFRecord of the features in canonical form."""
    frames = []
    for feature in features:
        value = pad_feature(feature, vocabulary, length)
        fields = {name: value[name] for name in ("input_ids", "input_mask", "segment_ids")}
        fields["unique_ids"] = [value["unique_id"]]
        if positions:
            fields["start_positions"] = [value["start_position"]]
            fields["end_positions"] = [value["end_position"]]
            fields["is_impossible"] = [int(value["is_impossible"])]
        frames.append(frame_payload(encode_example(fields)))
    return b"".join(frames)


def test_engines_make_the_same_features(kit):
    case = parse_case("edge_predict__s96__d32__q24", "nvidia")
    made = make_case(kit, case)
    vocabulary = made.tokenizer.vocabulary
    twin = type(made.tokenizer)(vocabulary, case.settings.rules, lower_case=True, engine="python")
    again = make_features(made.questions, twin, case.settings)
    assert values_of(made._replace(features=again)) == values_of(made)


def plain_contexts(bounds: list[tuple[int, int]]) -> list[list[int]]:
    """Of each span's tokens 1 where it gives the token most context: token by token, span by span."""

    def best(token: int) -> int:
        found, most = -1, -1.0
        for number, (first, length) in enumerate(bounds):
            if first <= token < first + length:
                score = min(token - first, first + length - 1 - token) + 0.01 * length
                if score > most:
                    found, most = number, score
        return found

    return [
        [int(best(token) == number) for token in range(first, first + length)]
        for number, (first, length) in enumerate(bounds)
    ]


@tries(4)
@given(st.integers(0, 90), st.integers(1, 40), st.integers(1, 50))
def test_each_token_has_its_maximum_context_in_one_span(tokens, longest, stride):
    bounds = compute_span_bounds(tokens, longest, stride)
    spans = make_spans(tokens, longest, stride)
    assert [(one.first, one.length) for one in spans] == bounds
    assert [one.is_max_context.astype(int).tolist() for one in spans] == plain_contexts(bounds)
    covered = np.zeros(tokens, int)
    for one in spans:
        covered[one.first : one.first + one.length] += one.is_max_context
    assert set(covered.tolist()) <= {1}


def test_the_shuffle_is_that_of_one_generator_with_the_programs_seed():
    order = list(range(50))
    Random(12345).shuffle(order)
    assert shuffle_questions(range(50)) == order


def test_a_feature_does_not_depend_on_the_other_questions(kit):
    made = make_case(kit, parse_case("xquad.en__s96__d32__q24", "google", training=True))
    alone = make_features(made.questions[7:8], made.tokenizer, made.settings)
    same = [one for one in made.features if one.example == 7]
    assert len(alone) == len(same) > 1
    for one, other in zip(alone, same, strict=True):
        again = replace(one, unique_id=other.unique_id, example=7)
        vocabulary = made.tokenizer.vocabulary
        assert pad_feature(again, vocabulary, 96) == pad_feature(other, vocabulary, 96)
    assert array("I", alone[0].ids(made.tokenizer.vocabulary))[0] == made.tokenizer.vocabulary.cls
