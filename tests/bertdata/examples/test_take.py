"""Chosen examples of a batch: those that the batch gives one by one, by the kernel and by its twin."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata._native import Engine, kernels
from bertdata.examples.columns import convert_to_arrays, take_examples
from tests.support.small_shards import examples, pack

ENDS = np.array([2, 2, 5], np.uint32)
ITEMS = np.arange(5, dtype=np.uint16)


@pytest.mark.parametrize("engine", ["native", "python"])
@given(
    rows=st.lists(examples(largest_id=60000), min_size=1, max_size=8),
    chosen=st.lists(st.integers(0, 7), max_size=12),
    wide=st.booleans(),
)
def test_any_examples_can_be_taken_in_any_order(engine: Engine, rows, chosen, wide):
    batch = convert_to_arrays(pack(rows, "I" if wide else "H"))
    order = np.array([number % len(rows) for number in chosen], np.int64)
    found = take_examples(batch, order, engine)
    assert list(found.examples()) == [rows[number] for number in order]
    assert found.ids.dtype == batch.ids.dtype
    assert found.ends.dtype == np.uint32
    wider = replace(batch, ends=batch.ends.astype(np.int64))
    assert list(take_examples(wider, order, engine).examples()) == list(found.examples())


@pytest.mark.parametrize("number", [3, -1, 1 << 62])
def test_an_example_that_is_not_there_is_refused(number):
    with pytest.raises(ValueError, match="order: names an example that is not there"):
        kernels.take_ragged(ENDS, [ITEMS], np.array([0, number], np.int64))


@pytest.mark.parametrize(
    ("ends", "items", "order", "message"),
    [
        (ENDS[::-1].copy(), ITEMS, [0], "ends: offsets do not ascend"),
        (ENDS, ITEMS[:4], [0], "ends: last offset does not meet the data's end"),
        (ENDS, np.arange(10, dtype=np.uint16)[::2], [0], "column: expected a flat buffer"),
        (ENDS.astype(np.int64), ITEMS, [0], "ends: expected a flat buffer of 4-byte integers"),
    ],
)
def test_columns_that_do_not_fit_are_refused(ends, items, order, message):
    with pytest.raises(ValueError, match=message):
        kernels.take_ragged(ends, [items], np.array(order, np.int64))


def test_more_items_than_offsets_count_are_refused():
    items = np.zeros(1 << 20, np.uint8)
    ends = np.array([1 << 20], np.uint32)
    with pytest.raises(ValueError, match="order: more items than 32-bit offsets count"):
        kernels.take_ragged(ends, [items], np.zeros(1 << 12, np.int64))
