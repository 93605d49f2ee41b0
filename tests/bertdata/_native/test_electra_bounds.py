"""The kernel of ELECTRA's examples called with impossible input: a ValueError, never a crash."""

from array import array
from typing import Any

import pytest

from bertdata._native import kernels


def make(**changes: Any) -> Any:
    given: dict[str, Any] = {
        "ids": array("H", range(5, 25)),
        "sentence_ends": array("I", [5, 10, 15, 20]),
        "document_ends": array("I", [2, 4]),
        "cls": 1,
        "sep": 2,
    }
    stream = {"seed": [1], "max_seq_length": 16, "inputs": 1}
    stream |= {name: changes.pop(name) for name in stream if name in changes}
    return kernels.ElectraExamples(**given | changes, stream=kernels.ElectraStream(**stream))


def test_the_call_that_the_others_vary_is_sound() -> None:
    assert len(make()) == 2
    assert make().tokens in (26, 25, 24)  # one [CLS] each, and one [SEP] or two
    assert len(make(inputs=5).batch(0, 2)) == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": []}, "seed: expected at least one digit"),
        ({"max_seq_length": 4}, "max_seq_length out of range"),
        ({"max_seq_length": 65536}, "max_seq_length out of range"),
        ({"sentence_ends": array("I", [15, 10, 5, 20])}, "sentence_ends: offsets do not ascend"),
        ({"document_ends": array("I", [2, 5])}, "document_ends: last offset does not meet the data's end"),
        ({"ids": array("Q", [5] * 20)}, "ids: expected a flat buffer of 4-byte integers"),
        ({"sep": 65536}, "cls or sep is wider than the ids"),
    ],
)
def test_impossible_input_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        make(**changes)


def test_a_step_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="step: expected 1 or more"):
        make().batch(0, 2, 0)


def test_a_text_without_ids_has_no_examples() -> None:
    nothing = make(ids=array("H"), sentence_ends=array("I", [0, 0]), document_ends=array("I", [0, 2, 2]))
    assert len(nothing) == nothing.tokens == 0
    assert len(nothing.batch(0, 5)[1]) == 0
