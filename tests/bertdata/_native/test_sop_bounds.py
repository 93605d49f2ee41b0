"""ALBERT's kernel called with what no caller of ours hands over: a ValueError, never a crash."""

from array import array
from typing import Any

import pytest

from bertdata._native import kernels

VOCABULARY = 30


def make(ids: Any = None, word_starts: Any = None, seed: Any = (1,), **changes: Any) -> Any:
    settings: dict[str, Any] = {
        "max_seq_length": 16,
        "max_predictions": 3,
        "dupe_factor": 2,
        "masked_lm_prob": 0.3,
        "mask_share": 0.8,
        "kept_of_unchanged": 0.5,
        "short_seq_prob": 0.1,
        "whole_word_mask": True,
        "masks": True,
        "fills_predictions": False,
        "own_next_label": 1,
        "cls": 1,
        "sep": 2,
        "mask": 3,
        "replacements": list(range(VOCABULARY)),
        "continues_word": bytes(VOCABULARY),
        "swaps_halves": True,
        "ngram_limits": [0.5, 0.75, 1.0],
        "ngram_seed": 7,
        "permutes": True,
    }
    return kernels.SopExamples(
        array("H", range(5, 25)) if ids is None else ids,
        array("I", [5, 10, 15, 20]),
        array("I", [2, 4]),
        rules=kernels.BertRules(**settings | changes),
        seed=list(seed),
        word_starts=word_starts,
    )


def test_the_call_that_the_others_vary_is_sound() -> None:
    assert len(make()) == 4
    columns = make(word_starts=bytes(20)).batch(0, 4)
    assert [len(column) for column in columns[:4]] == [52, 4, 4, 52]
    assert sum(columns[3]) == 3 * 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": ()}, "seed: expected at least one digit"),
        ({"ids": array("H", [29] * 19 + [30])}, "ids: an id is outside the vocabulary"),
        ({"word_starts": bytes(19)}, "word_starts: expected a byte for each id"),
        ({"ngram_limits": [0.5, 0.75]}, "ngram_limits: expected ascending numbers above 0, the last 1"),
        ({"ngram_limits": [0.5, 0.25, 1.0]}, "ngram_limits: expected ascending numbers"),
        ({"ngram_limits": [0.0, 1.0]}, "ngram_limits: expected ascending numbers"),
        ({"ngram_limits": [float("nan"), 1.0]}, "ngram_limits: expected ascending numbers"),
        ({"max_seq_length": 4}, "max_seq_length or max_predictions out of range"),
        ({"sep": 30}, "an id is outside the vocabulary"),
    ],
)
def test_examples_of_impossible_input_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        make(**changes)


def test_lengths_at_load_are_checked_too() -> None:
    flags = bytes(VOCABULARY)
    with pytest.raises(ValueError, match="ngram_limits: expected ascending numbers above 0, the last 1"):
        kernels.DynamicMasker(
            most=3,
            mask=3,
            mask_limit=1,
            random_limit=2,
            replacements=[4],
            is_special=flags,
            continues_word=flags,
            whole_words=True,
            draws_counts=False,
            ngram_limits=[0.3],
        )
