"""The kernel of masked blocks called with what no caller of ours hands over: a ValueError, never a crash."""

from array import array
from typing import Any

import pytest

from bertdata._native import kernels

VOCABULARY = 30


def make(
    ids: Any = None,
    sentence_ends: Any = None,
    document_ends: Any = None,
    keys: Any = (7,),
    seed: Any = (1,),
    **changes: Any,
) -> Any:
    settings: dict[str, Any] = {
        "breaks": 2,
        "max_seq_length": 16,
        "cls": 1,
        "sep": 2,
        "masked_lm_prob": 0.15,
        "masks": True,
        "most": 3,
        "mask": 3,
        "mask_limit": 1 << 31,
        "random_limit": 1 << 32,
        "replacements": list(range(VOCABULARY)),
        "is_special": bytes(VOCABULARY),
        "continues_word": bytes(VOCABULARY),
        "whole_words": False,
        "draws_counts": False,
    }
    return kernels.MlmExamples(
        array("H", range(5, 25)) if ids is None else ids,
        array("I", [5, 10, 15, 20]) if sentence_ends is None else sentence_ends,
        array("I", [2, 4]) if document_ends is None else document_ends,
        rules=kernels.MlmRules(**settings | changes),
        keys=list(keys),
        seed=list(seed),
    )


def test_the_call_that_the_others_vary_is_sound() -> None:
    assert len(make()) == 2
    assert len(make(keys=(7, 8, 9))) == 6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": ()}, "seed: expected at least one digit"),
        ({"keys": ()}, "keys: expected one for each pass"),
        ({"sentence_ends": array("I", [15, 10, 5, 20])}, "sentence_ends: offsets do not ascend"),
        (
            {"sentence_ends": array("I", [5, 10, 15, 19])},
            "sentence_ends: last offset does not meet the data's end",
        ),
        ({"document_ends": array("I", [2, 5])}, "document_ends: last offset does not meet the data's end"),
        ({"ids": array("H", [29] * 19 + [30])}, "ids: an id is outside the vocabulary"),
        ({"ids": memoryview(array("H", [5] * 40))[::2]}, "ids: expected a flat buffer"),
        ({"ids": array("Q", [5] * 20)}, "ids: expected a flat buffer of 4-byte integers"),
        ({"breaks": 4}, "breaks: expected 0 to 3"),
        ({"max_seq_length": 1}, "max_seq_length or most out of range"),
        ({"max_seq_length": 65536}, "max_seq_length or most out of range"),
        ({"most": 17}, "max_seq_length or most out of range"),
        ({"masked_lm_prob": 0.0}, "masked_lm_prob: expected a share above 0, at most 1"),
        ({"masked_lm_prob": float("nan")}, "masked_lm_prob: expected a share above 0, at most 1"),
        ({"sep": 30}, "an id is outside the vocabulary"),
        ({"mask": 30}, "an id is outside the vocabulary"),
        ({"replacements": []}, "replacements: expected at least one"),
        ({"continues_word": b""}, "is_special and continues_word: expected a byte for each id"),
    ],
)
def test_blocks_of_impossible_input_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        make(**changes)


def test_a_text_without_ids_has_no_blocks() -> None:
    nothing = make(array("H"), array("I", [0, 0]), array("I", [0, 2, 2]))
    assert len(nothing) == nothing.tokens == nothing.masked == 0
    assert len(nothing.batch(0, 5)[1]) == 0


def test_a_step_beyond_the_end_gives_one_example() -> None:
    examples = make(keys=range(20))
    found, expected = examples.batch(0, len(examples), (1 << 64) - 1), examples.batch(0, 1)
    assert [bytes(column) for column in found] == [bytes(column) for column in expected]
    with pytest.raises(ValueError, match="step: expected 1 or more"):
        examples.batch(0, 5, 0)
