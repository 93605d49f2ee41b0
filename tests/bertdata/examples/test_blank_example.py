"""A blank example: of the layout's largest size, all zeros, and all of its ids in the first segment."""

import io
from typing import Any

import pytest

from bertdata.examples.columns import convert_to_item_types, make_blank_example
from bertdata.examples.objectives import find_objective
from bertdata.records import ShardLayout
from bertdata.shards.example_proto import decode_example
from bertdata.shards.framing import read_payloads
from bertdata.shards.tfrecord import encode_batch

IDS = {"ids": [0] * 6, "ends": [6]}
MASKS = {"positions": [0, 0], "labels": [0, 0], "mask_ends": [2]}
COLUMNS: dict[str, dict[str, list[int]]] = {
    "bert": {**IDS, **MASKS, "first_lengths": [6], "next_labels": [0]},
    "mlm": {**IDS, **MASKS},
    "sop": {**IDS, **MASKS, "first_lengths": [6], "word_starts": [0] * 6, "order_labels": [0]},
    "electra": {**IDS, "first_lengths": [6]},
    "span": {**IDS, **MASKS, "left_boundaries": [0, 0], "right_boundaries": [0, 0], "span_ends": [2]},
}


def make(name: str) -> tuple[Any, ShardLayout]:
    kind = find_objective(name).batch_type
    sizes = {what: 6 if what == "max_seq_length" else 2 for what in kind.sizes()}
    layout = ShardLayout.of_sizes(sizes, objective=name)
    return make_blank_example(kind, layout), layout


@pytest.mark.parametrize("name", COLUMNS)
def test_a_blank_example_fills_the_layout_with_zeros(name):
    blank, _ = make(name)
    assert {item.name: getattr(blank, item.name).tolist() for item in blank.columns()} == COLUMNS[name]


@pytest.mark.parametrize("name", ["bert", "sop", "electra"])
def test_no_id_of_a_blank_example_is_in_the_second_segment(name):
    blank, layout = make(name)
    sink = io.BytesIO(bytes(encode_batch(convert_to_item_types(blank), layout)))
    [payload] = read_payloads(sink, "blank")
    features = decode_example(payload)
    assert list(features["segment_ids"]) == [0] * 6
    assert list(features["input_mask"]) == [1] * 6
