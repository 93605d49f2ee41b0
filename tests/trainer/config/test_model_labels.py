"""The labels that a config.json tells."""

import pytest

from trainer.config.model_labels import ModelLabels, read_labels

NAMES = {"0": "entailment", "1": "neutral", "2": "contradiction"}
NUMBERS = {name: int(number) for number, name in NAMES.items()}


def test_names_are_in_the_order_of_their_numbers():
    shuffled = {"2": "contradiction", "0": "entailment", "1": "neutral"}
    found, warnings = read_labels({"id2label": shuffled, "label2id": NUMBERS})
    assert found == ModelLabels(names=("entailment", "neutral", "contradiction"), count=3)
    assert not found.are_generic
    assert not warnings


def test_transformers_own_names_are_generic():
    found, _ = read_labels({"id2label": {str(number): f"LABEL_{number}" for number in range(12)}})
    assert found.are_generic
    assert found.names[10] == "LABEL_10"


@pytest.mark.parametrize("key", ["num_labels", "_num_labels"])
def test_the_number_alone_is_kept(key):
    assert read_labels({key: 3, "problem_type": "regression"}) == (
        ModelLabels(count=3, problem_type="regression"),
        [],
    )


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"id2label": NAMES, "num_labels": 2}, "num_labels is 2, but id2label names 3: the names are taken"),
        ({"id2label": NAMES, "label2id": {"neutral": 0}}, "label2id has other numbers than id2label"),
        ({"id2label": {"1": "a", "2": "b"}}, "id2label is not read"),
        ({"id2label": ["a", "b"]}, "id2label is not read"),
        ({"problem_type": "ranking"}, "problem_type is 'ranking', expected one of regression"),
    ],
)
def test_what_contradicts_itself_is_a_warning(keys, said):
    [warning] = read_labels(keys)[1]
    assert warning.startswith(said)
