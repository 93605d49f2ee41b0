"""The kernels of masked spans called with what no caller of ours hands over: a ValueError, never a crash."""

from array import array
from typing import Any

import pytest

from bertdata._native import kernels

VOCABULARY = 30
RULES: dict[str, Any] = {
    "most": 3,
    "shortest": 1,
    "lengths": [0.5, 1.0],
    "mask_limit": 0.8,
    "random_limit": 0.9,
    "by_id": False,
    "are_external": True,
    "mask": 3,
}
WORDS: dict[str, Any] = {"continues_word": bytes(VOCABULARY), "replacements": list(range(VOCABULARY))}


def make(**changes: Any) -> Any:
    given: dict[str, Any] = {
        "ids": array("H", range(5, 25)),
        "sentence_ends": array("I", [5, 10, 15, 20]),
        "document_ends": array("I", [2, 4]),
        "word_starts": None,
        **WORDS,
        "max_seq_length": 16,
        "cls": 1,
        "sep": 2,
        "masked_lm_prob": 0.15,
        "masks": True,
        "as_original": False,
        "tells_words": False,
        "keys": [7],
        "seed": [1],
        "numpy_seed": 0,
    }
    rules = kernels.SpanRules(**RULES | {name: changes.pop(name) for name in RULES if name in changes})
    return kernels.SpanExamples(**given | changes, rules=rules)


def test_the_call_that_the_others_vary_is_sound() -> None:
    assert len(make()) == 2
    assert len(make(keys=[7, 8, 9])) == 6
    assert len(make(as_original=True, keys=[7, 8, 9]).batch(0, 6)) == 8
    assert len(make(tells_words=True, word_starts=bytes(20)).batch(0, 2)) == 9


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": []}, "seed: expected at least one digit"),
        ({"keys": []}, "keys: expected one for each pass"),
        ({"sentence_ends": array("I", [15, 10, 5, 20])}, "sentence_ends: offsets do not ascend"),
        ({"document_ends": array("I", [2, 5])}, "document_ends: last offset does not meet the data's end"),
        ({"ids": array("H", [29] * 19 + [30])}, "ids: an id is outside the vocabulary"),
        ({"ids": array("Q", [5] * 20)}, "ids: expected a flat buffer of 4-byte integers"),
        ({"word_starts": bytes(19)}, "word_starts: expected a byte for each id"),
        ({"tells_words": True}, "word_starts: expected a byte for each id"),
        ({"max_seq_length": 2}, "max_seq_length out of range"),
        ({"max_seq_length": 65536}, "max_seq_length out of range"),
        ({"most": 65536}, "most: expected at most 65535"),
        ({"shortest": 0}, "shortest: expected 1 to 65535"),
        ({"lengths": []}, "lengths: expected ascending shares, the last one 1"),
        ({"lengths": [0.5, 0.9]}, "lengths: expected ascending shares, the last one 1"),
        ({"lengths": [0.9, 0.5, 1.0]}, "lengths: expected ascending shares, the last one 1"),
        ({"masked_lm_prob": 0.0}, "masked_lm_prob: expected a share above 0, at most 1"),
        ({"masked_lm_prob": float("nan")}, "masked_lm_prob: expected a share above 0, at most 1"),
        ({"sep": 30}, "an id is outside the vocabulary"),
        ({"mask": 30}, "an id is outside the vocabulary"),
        ({"replacements": [30]}, "an id is outside the vocabulary"),
        ({"replacements": []}, "replacements: expected at least one"),
    ],
)
def test_spans_of_impossible_input_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        make(**changes)


def test_a_text_without_ids_has_no_blocks() -> None:
    for as_original in (True, False):
        nothing = make(
            ids=array("H"),
            sentence_ends=array("I", [0, 0]),
            document_ends=array("I", [0, 2, 2]),
            as_original=as_original,
        )
        assert len(nothing) == nothing.tokens == nothing.masked == 0
        assert len(nothing.batch(0, 5)[1]) == 0


def load(masker: Any = None, **changes: Any) -> tuple[Any, Any]:
    """The ids and the numbers of masks of two loaded examples."""
    masker = masker or kernels.SpanMasker(rules=kernels.SpanRules(**RULES), **WORDS)
    given: dict[str, Any] = {
        "ids": array("i", [1, *range(5, 15), 2, 1, 2]),
        "starts": array("q", [0, 12]),
        "lengths": array("i", [12, 2]),
        "positions": array("i", [0] * 6),
        "labels": array("i", [0] * 6),
        "counts": array("i", [0, 0]),
        "keys": array("Q", [7, 7]),
        "numbers": array("Q", [0, 1]),
        "rates": array("d", [0.3, 0.3]),
    }
    given |= changes
    masker.mask(**given)
    return given["ids"], given["counts"]


def test_examples_without_text_have_no_masks() -> None:
    ids, counts = load()
    assert counts.tolist() == [3, 0]
    assert (ids[0], ids[11:].tolist()) == (1, [2, 1, 2])
    for lengths in ([1, 0], [12, 1]):
        assert load(lengths=array("i", lengths))[1].tolist()[1] == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rates": array("d", [0.3, 0.0])}, "rates: expected shares above 0, at most 1"),
        ({"positions": array("i", [0] * 5)}, "positions and labels: expected room for every mask"),
        ({"keys": array("Q", [7])}, "examples: columns differ in length"),
        ({"ids": array("i", [1, *range(5, 15), 30, 1, 2])}, "example 0: an id is outside the vocabulary"),
        ({"lengths": array("i", [13, 2])}, "example 1: its ids are outside the buffer or another's"),
        ({"word_starts": bytes(13)}, "word_starts: expected a byte for each id"),
    ],
)
def test_loaded_examples_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"replacements": []}, "replacements: expected at least one"),
        ({"replacements": [-1]}, "an id is outside the vocabulary"),
        ({"continues_word": b"\0\0"}, "an id is outside the vocabulary"),
    ],
)
def test_maskers_of_impossible_vocabularies_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kernels.SpanMasker(rules=kernels.SpanRules(**RULES), **WORDS | changes)
