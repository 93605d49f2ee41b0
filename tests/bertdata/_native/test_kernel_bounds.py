"""Kernels called directly, with what no caller of ours hands over: a ValueError, never a crash or a hang."""

import subprocess
import sys
from array import array
from io import BytesIO
from typing import Any

import pytest

from bertdata._native import kernels
from bertdata.examples.bert.objective import BERT
from bertdata.records import ShardLayout
from bertdata.shards.example_proto import decode_example, encode_example
from bertdata.shards.framing import frame_payload, read_payloads
from tests.support.paths import ROOT
from tests.support.small_shards import LAYOUT

VOCABULARY = 30


def rules(**changes: Any) -> Any:
    settings: dict[str, Any] = {
        "max_seq_length": 16,
        "max_predictions": 3,
        "dupe_factor": 1,
        "masked_lm_prob": 0.15,
        "mask_share": 0.8,
        "kept_of_unchanged": 0.5,
        "short_seq_prob": 0.1,
        "whole_word_mask": False,
        "masks": True,
        "fills_predictions": False,
        "own_next_label": 1,
        "cls": 1,
        "sep": 2,
        "mask": 3,
        "replacements": list(range(VOCABULARY)),
        "continues_word": bytes(VOCABULARY),
    }
    return kernels.BertRules(**settings | changes)


def make(
    ids: Any = None, sentence_ends: Any = None, document_ends: Any = None, seed: Any = (1,), **changes: Any
) -> Any:
    return kernels.BertExamples(
        array("H", range(5, 25)) if ids is None else ids,
        array("I", [5, 10, 15, 20]) if sentence_ends is None else sentence_ends,
        array("I", [2, 4]) if document_ends is None else document_ends,
        rules(**changes),
        list(seed),
    )


def test_the_call_that_the_others_vary_is_sound() -> None:
    assert len(make()) > 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": ()}, "seed: expected at least one digit"),
        ({"document_ends": array("I", [2, 2, 4])}, "document_ends: item 1 is empty"),
        ({"document_ends": array("I", [0, 4])}, "document_ends: item 0 is empty"),
        ({"sentence_ends": array("I", [5, 5, 15, 20])}, "sentence_ends: item 1 is empty"),
        ({"sentence_ends": array("I", [15, 10, 5, 20])}, "sentence_ends: offsets do not ascend"),
        ({"document_ends": array("I", [2, 5])}, "document_ends: last offset does not meet the data's end"),
        ({"ids": array("H", [29] * 19 + [30])}, "ids: an id is outside the vocabulary"),
        ({"ids": memoryview(array("H", range(5, 25)))[::-1]}, "ids: expected a flat buffer"),
        ({"ids": memoryview(array("H", [5] * 40))[::2]}, "ids: expected a flat buffer"),
        ({"ids": array("Q", [5] * 20)}, "ids: expected a flat buffer of 4-byte integers"),
        ({"ids": array("f", [5] * 20)}, "ids: expected a flat buffer of 4-byte integers, found items f"),
        ({"masked_lm_prob": float("nan")}, "a probability is not a finite number"),
        ({"masked_lm_prob": float("inf")}, "a probability is not a finite number"),
        ({"mask_share": float("nan")}, "a probability is not a finite number"),
        ({"kept_of_unchanged": float("nan")}, "a probability is not a finite number"),
        ({"short_seq_prob": float("nan")}, "a probability is not a finite number"),
        ({"max_seq_length": 1 << 30}, "max_seq_length or max_predictions out of range"),
        ({"max_seq_length": 4}, "max_seq_length or max_predictions out of range"),
        ({"replacements": []}, "replacements: expected at least one"),
        ({"replacements": [30]}, "an id is outside the vocabulary"),
        ({"mask": 30}, "an id is outside the vocabulary"),
        ({"continues_word": b""}, "an id is outside the vocabulary"),
    ],
)
def test_examples_of_impossible_input_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        make(**changes)


@pytest.mark.parametrize("step", [1 << 63, (1 << 64) - 1])
def test_a_step_beyond_the_end_gives_one_example(step: int) -> None:
    examples = make(dupe_factor=40)
    assert len(examples) > 9
    found, expected = examples.batch(0, len(examples), step), examples.batch(0, 1)
    assert [bytes(column) for column in found] == [bytes(column) for column in expected]
    assert len(examples.batch(len(examples), (1 << 64) - 1, step)[1]) == 0
    with pytest.raises(ValueError, match="step: expected 1 or more"):
        examples.batch(0, 5, 0)


def test_a_random_stream_needs_a_key() -> None:
    with pytest.raises(ValueError, match="seed: expected at least one digit"):
        kernels.RandomStream([])


COLUMNS = [
    (4, 1, False, 100),
    (4, -1, False, 100),
    (2, -1, True, 100),
    (2, 4, True, 100),
    (4, -1, False, 100),
]
"""ids, their ends, a place in the ids, positions of masks, their ends"""
LABELS = (4, 4, False, 100)


def record_format(*fields: tuple[Any, ...], columns: Any = None, **changes: int) -> Any:
    names = {"positions": 3, "labels": 5, "first_slot": 0} | changes
    return kernels.RecordFormat(columns=columns or [*COLUMNS, LABELS], fields=list(fields), **names)


VALUES, ONES, AFTER, SLOTS, SLOT_POSITIONS, SLOT_AFTER = range(6)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (("a", False, VALUES, 0, 1 << 30, 0), "field a: its width, padding or column does not suit"),
        (("a", False, VALUES, 0, 8, 1 << 21), "field a: its width, padding or column does not suit"),
        (("a", True, AFTER, 2, 8, 0), "field a: its width, padding or column does not suit"),
        (("a", False, AFTER, 0, 8, 0), "field a: its width, padding or column does not suit"),
        (("a", False, SLOT_AFTER, 3, 8, 0), "field a: its width, padding or column does not suit"),
        (("a", False, VALUES, 9, 8, 0), "fields: column or source out of range"),
        (("a", False, 8, 0, 8, 0), "fields: column or source out of range"),
        (("a", False, -1, 0, 8, 0), "fields: column or source out of range"),
    ],
)
def test_a_field_that_cannot_be_made_is_refused(field: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        record_format(field)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"columns": [(3, 1, False, 9), (4, -1, False, 9)]}, "columns: item width"),
        ({"columns": [(4, 2, False, 9), (4, -1, False, 9)]}, "columns: item width"),
        ({"columns": [(4, 1, False, 1 << 21), (4, -1, False, 9)]}, "columns: item width"),
        ({"columns": [(4, 1, False, 9), (2, -1, False, 9)]}, "columns: end offsets are four bytes wide"),
        ({"columns": [(4, 0, False, 9)]}, "columns: end offsets are four bytes wide"),
        (
            {"columns": [(4, -1, False, 9)], "positions": 0, "labels": 0},
            "columns: the first must hold the ids",
        ),
        ({"positions": 9}, "columns: the first must hold the ids"),
    ],
)
def test_columns_that_cannot_be_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        record_format(**changes)


@pytest.mark.parametrize(
    ("fields", "changes", "message"),
    [
        ([("a", False, SLOTS, 0, 8, 0)], {"first_slot": 9}, "first_slot: beyond the slots"),
        ([("a", False, SLOTS, 0, 8, 0)], {"labels": -1}, "fields: slots need positions and labels"),
        (
            [("a", False, SLOTS, 0, 8, 0), ("b", False, SLOT_POSITIONS, 0, 4, 0)],
            {"first_slot": 2},
            "field b: has not as many slots as the others",
        ),
        (
            [("a", False, SLOTS, 0, 8, 0), ("b", False, SLOTS, 5, 3, 0)],
            {"first_slot": 2},
            "field b: has not as many slots as the others",
        ),
    ],
)
def test_slots_that_do_not_agree_are_refused(fields: Any, changes: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        record_format(*fields, **changes)


def test_more_masks_than_slots_for_them_are_refused() -> None:
    slots = record_format(("a", False, SLOTS, 0, 8, 0), first_slot=1)
    ids, ends = array("I", [7, 8, 9]), array("I", [3])
    positions, mask_ends = array("H", [0, 1]), array("I", [2])
    with pytest.raises(ValueError, match="more masks than max_predictions_per_seq"):
        slots.encode([ids, ends, array("H", [1]), positions, mask_ends, array("I", [1, 2])])


def test_ids_beyond_the_width_of_a_field_of_ones_are_refused() -> None:
    after = record_format(("a", False, AFTER, 2, 2, 0))
    ids, none = array("I", [7, 8, 9]), array("I")
    with pytest.raises(ValueError, match="example 0 does not fit the layout"):
        after.encode([ids, array("I", [3]), array("H", [1]), array("H"), array("I", [0]), none])


def test_ones_for_more_items_than_a_field_has_room_for_are_refused() -> None:
    for width in (0, 2):
        ones = record_format(("a", False, ONES, 0, width, 0), ("b", False, ONES, 0, 8, 0))
        with pytest.raises(ValueError, match="example 0 does not fit the layout"):
            ones.encode(
                [
                    array("I", [7, 8, 9]),
                    array("I", [3]),
                    array("H", [1]),
                    array("H"),
                    array("I", [0]),
                    array("I"),
                ]
            )


def test_padding_other_than_zero_is_written() -> None:
    values = record_format(("a", False, VALUES, 0, 4, 300))
    columns = [array("I", [7]), array("I", [1]), array("H", [0]), array("H"), array("I", [0]), array("I")]
    record = bytes(values.encode(columns))
    assert decode_example(record[12:-4]) == {"a": [7, 300, 300, 300]}


def float_format(width: int) -> Any:
    """One column, a field of floats of it."""
    columns = [(4, 1, False, 100), (4, -1, False, 100)]
    return record_format(("a", True, VALUES, 0, width, 0), columns=columns, positions=-1, labels=-1)


def test_whole_numbers_travel_as_floats() -> None:
    """Values of a column without a field of ones: as many as the field is wide."""
    rows = float_format(3)
    record = bytes(rows.encode([array("H", [2, 0, 7, 5]), array("I", [3, 4])]))
    payloads = list(read_payloads(BytesIO(record), "rows"))
    assert [decode_example(payload)["a"] for payload in payloads] == [
        array("f", [2, 0, 7]),
        array("f", [5, 0, 0]),
    ]
    (values, ends), used = rows.decode(record, 9)
    assert (list(values), list(ends), used) == ([2, 0, 7, 5, 0, 0], [3, 6], len(record))


@pytest.mark.parametrize("value", [0.5, -1.0, 101.0, float("inf"), float("nan"), 3e9])
def test_floats_that_are_no_values_are_refused(value: float) -> None:
    rows = float_format(1)
    with pytest.raises(kernels.RecordError, match=r"a holds -?\d+, expected 0 to 100"):
        rows.decode(frame_payload(encode_example({"a": array("f", [value])})), 9)


def tokenizer_of_one_token() -> Any:
    return kernels.Tokenizer(
        tokens=["a"],
        ids=[0],
        unknown=0,
        lower_case=True,
        strips_accents=True,
        drops_unassigned=False,
        keeps_special_tokens=False,
        max_word_chars=100,
    )


@pytest.mark.parametrize("data", [memoryview(b"abcdef")[::-1], memoryview(b"abcdef")[::2], array("I", [1])])
def test_bytes_must_lie_one_behind_the_other(data: Any) -> None:
    tokenizer = tokenizer_of_one_token()
    format = BERT.record_format(LAYOUT)
    calls = (
        tokenizer.tokenize,
        kernels.crc32c,
        kernels.canonicalize,
        lambda it: format.decode(it, 1),
        lambda it: kernels.find_frame_ends(it, 1),
    )
    for call in calls:
        with pytest.raises(ValueError, match="expected a flat buffer of 1-byte integers"):
            call(data)


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        ([3, 2, 6], "ends: offsets do not ascend"),
        ([3, 7], "ends: last offset does not meet the data's end"),
        ([3, 5], "ends: last offset does not meet the data's end"),
        ([], "ends: last offset does not meet the data's end"),
    ],
)
def test_ends_of_texts_that_are_not_in_the_data_are_refused(ends: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tokenizer_of_one_token().tokenize_each(b"a a aa", array("I", ends))


def test_a_text_that_ends_within_a_character_is_refused() -> None:
    """The byte beyond the end is there, and is not read."""
    tokenizer = tokenizer_of_one_token()
    data = "aé".encode()
    with pytest.raises(kernels.InvalidUtf8):
        tokenizer.tokenize_each(data, array("I", [2, 3]))
    ids, ends = tokenizer.tokenize_each(data + b"a", array("I", [1, 3, 4]))
    assert (list(ids), list(ends)) == ([0, 0, 0], [1, 2, 3])


def test_the_tokens_of_no_texts_are_none() -> None:
    ids, ends = tokenizer_of_one_token().tokenize_each(b"", array("I"))
    assert (len(ids), len(ends)) == (0, 0)


MEMORY = """
import random, resource, sys
from bertdata._native import kernels

tokens = list("0123456789abcdef") + ["##" + c for c in "0123456789abcdef"]
flags = {"lower_case": True, "strips_accents": True, "drops_unassigned": False, "keeps_special_tokens": False}
tokenizer = kernels.Tokenizer(tokens=tokens, ids=list(range(32)), unknown=0, max_word_chars=100, **flags)
stream = random.Random(1)
before = None
for part in range(12):
    digits = stream.randbytes(1_500_000).hex()
    tail = sys.argv[1]
    tokenizer.tokenize(" ".join(digits[i:i + 12] + tail for i in range(0, len(digits), 12)).encode())
    if part == 3:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("tail", ["", "\u00e9"])
def test_words_never_seen_again_do_not_fill_the_memory(tail: str) -> None:
    """36 MB of random hexadecimal words: the caches forget, so that the last 24 MB add next to nothing."""
    grown = subprocess.run(
        [sys.executable, "-c", MEMORY, tail], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert int(grown.stdout) < 12_000  # KiB; short words took 150,000, without end


def test_a_layout_of_more_masks_than_places_is_refused() -> None:
    layout = ShardLayout(max_seq_length=4, max_predictions_per_seq=6, remask=True)
    with pytest.raises(ValueError, match="field input_ids: has not as many slots as the others"):
        BERT.record_format(layout)
