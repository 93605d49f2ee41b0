"""The kernel of dynamic masks called directly, with what no caller of ours hands over: a ValueError."""

import itertools
from array import array
from typing import Any

import pytest

from bertdata._native import kernels

VOCABULARY = 30


def masker(**changes: Any) -> Any:
    rules: dict[str, Any] = {
        "most": 3,
        "mask": 4,
        "mask_limit": 1 << 31,
        "random_limit": 1 << 32,
        "replacements": list(range(VOCABULARY)),
        "is_special": bytes(5) + b"\1" + bytes(VOCABULARY - 6),
        "continues_word": bytes(VOCABULARY),
        "whole_words": False,
        "draws_counts": False,
    }
    return kernels.DynamicMasker(**rules | changes)


def mask(rules: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Mask two examples of 12 and 8 ids; the arguments, as they are afterwards."""
    given: dict[str, Any] = {
        "ids": array("i", range(6, 26)),
        "starts": array("q", [0, 12]),
        "lengths": array("i", [12, 8]),
        "positions": array("i", bytes(24)),
        "labels": array("i", bytes(24)),
        "counts": array("i", [0, 0]),
        "keys": array("Q", [1, 1]),
        "numbers": array("Q", [0, 1]),
        "rates": array("d", [0.3, 0.3]),
    } | changes
    masker(**rules or {}).mask(**given)
    return given


def test_the_call_that_the_others_vary_is_sound() -> None:
    found = mask()
    assert list(found["counts"]) == [3, 2]
    positions, labels = list(found["positions"]), list(found["labels"])
    assert [labels[slot] for slot in range(3)] == [6 + positions[slot] for slot in range(3)]
    assert [labels[slot] for slot in (3, 4)] == [18 + positions[slot] for slot in (3, 4)]


OUTSIDE = "its ids are outside the buffer or another's"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"starts": array("q", [0, 13])}, f"example 1: {OUTSIDE}"),
        ({"starts": array("q", [0, 11])}, f"example 1: {OUTSIDE}"),
        ({"starts": array("q", [-1, 12])}, f"example 0: {OUTSIDE}"),
        ({"starts": array("q", [0, (1 << 63) - 1])}, f"example 1: {OUTSIDE}"),
        ({"starts": array("q", [8, 0])}, f"example 1: {OUTSIDE}"),
        ({"lengths": array("i", [12, -1])}, f"example 1: {OUTSIDE}"),
        ({"lengths": array("i", [70_000, 8])}, f"example 0: {OUTSIDE}"),
        ({"starts": array("q", [0])}, "examples: columns differ in length"),
        ({"numbers": array("Q", [0])}, "examples: columns differ in length"),
        ({"counts": array("i", [0])}, "examples: columns differ in length"),
        ({"rates": array("d", [0.3])}, "examples: columns differ in length"),
        ({"rates": array("d", [0.3, 0])}, "rates: expected shares above 0, at most 1"),
        ({"rates": array("d", [0.3, 1.1])}, "rates: expected shares above 0, at most 1"),
        ({"rates": array("d", [float("nan"), 0.3])}, "rates: expected shares above 0, at most 1"),
        ({"rates": array("f", [0.3, 0.3])}, "rates: expected a flat buffer of doubles"),
        ({"positions": array("i", bytes(20))}, "positions and labels: expected room for every mask"),
        ({"labels": array("i", bytes(28))}, "positions and labels: expected room for every mask"),
        ({"ids": array("i", [5] * 19 + [30])}, "example 1: an id is outside the vocabulary"),
        ({"ids": array("i", [5] * 19 + [-1])}, "example 1: an id is outside the vocabulary"),
        ({"word_starts": bytes(19)}, "word_starts: expected a byte for each id"),
        ({"word_starts": array("H", [1] * 20)}, "word_starts: expected a flat buffer of 1-byte integers"),
        ({"ids": array("h", [5] * 20)}, "ids: expected a flat buffer of 4-byte integers"),
        ({"ids": array("f", [5] * 20)}, "ids: expected a flat buffer of 4-byte integers"),
        ({"ids": bytes(80)}, "ids: expected a flat buffer of 4-byte integers"),
        ({"ids": memoryview(bytes(80)).cast("i")}, "ids: cannot be written to"),
        ({"rules": {"most": 65_536}}, "most: expected at most 65535"),
        ({"rules": {"replacements": []}}, "replacements: expected at least one"),
        ({"rules": {"replacements": [30]}}, "an id is outside the vocabulary"),
        ({"rules": {"mask": 30}}, "an id is outside the vocabulary"),
        ({"rules": {"is_special": b""}}, "is_special and continues_word: expected a byte for each id"),
    ],
)
def test_impossible_input_is_refused_and_changes_nothing(changes: dict[str, Any], message: str) -> None:
    ids = changes.setdefault("ids", array("i", range(6, 26)))
    before = bytes(ids)
    with pytest.raises(ValueError, match=f"^{message}"):
        mask(**changes)
    assert bytes(ids) == before


@pytest.mark.parametrize(
    ("first", "second"),
    [
        *itertools.combinations(("ids", "positions", "labels", "counts"), 2),
        ("ids", "lengths"),
        ("labels", "keys"),
    ],
)
def test_buffers_of_which_one_that_is_written_overlaps_another_are_refused(first: str, second: str) -> None:
    sizes = {"ids": 80, "positions": 24, "labels": 24, "counts": 8, "lengths": 8, "keys": 16}
    shared = bytearray(sizes[first] + sizes[second] - 4)
    memory = memoryview(shared)
    changes = {
        first: memory[: sizes[first]].cast("i"),
        second: memory[sizes[first] - 4 - sizes[first] % 8 :][: sizes[second]].cast(
            "Q" if second == "keys" else "i"
        ),
    }
    before = bytes(shared)
    with pytest.raises(ValueError, match=f"^{first} and {second}: the buffers overlap"):
        mask(**changes)
    assert bytes(shared) == before


def test_nothing_is_masked_where_there_is_no_room_or_no_candidate() -> None:
    none = array("i")
    assert list(mask({"most": 0}, positions=none, labels=none)["counts"]) == [0, 0]
    assert list(mask(ids=array("i", [5] * 20))["counts"]) == [0, 0]
    empty = {name: array(code) for name, code in (("starts", "q"), ("lengths", "i"), ("counts", "i"))}
    more = {"keys": array("Q"), "numbers": array("Q"), "rates": array("d"), "positions": none, "labels": none}
    assert list(mask(**empty, **more)["counts"]) == []
    with pytest.raises(ValueError, match="below: expected 1 or more"):
        kernels.CounterStream(0, 0).below(0)
