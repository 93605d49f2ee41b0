"""Packing by best fit: a plain twin of the rule, and the padding of real lengths."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.records import ShardLayout
from trainer.data.generated import generate_data
from trainer.data.load_packing import RowsPackedAtLoad, pack_best_fit


def twin(lengths: list[int], room: int, most: int) -> list[int]:
    """The row of each example, by looking at every row for each."""
    free, sizes, changed, chosen = [], [], [], [0] * len(lengths)
    for turn, example in enumerate(sorted(range(len(lengths)), key=lambda one: (-lengths[one], one))):
        fits = [row for row in range(len(free)) if free[row] >= lengths[example] and sizes[row] < most]
        row = min(fits, key=lambda one: (free[one], -changed[one]), default=len(free))
        if row == len(free):
            free.append(room)
            sizes.append(0)
            changed.append(0)
        chosen[example], changed[row] = row, turn
        free[row] -= lengths[example]
        sizes[row] += 1
    return chosen


@given(
    lengths=st.lists(st.integers(1, 20), min_size=1, max_size=60),
    room=st.integers(20, 30),
    most=st.integers(1, 5),
)
def test_rows_are_those_of_the_plain_rule(lengths, room, most):
    assert pack_best_fit(np.array(lengths), room, most).tolist() == twin(lengths, room, most)


@pytest.mark.parametrize(("name", "room", "most_padding"), [("wikipedia_512", 512, 0.0025)])
def test_real_lengths_leave_little_padding(kit, name, room, most_padding):
    """A window's rows of Wikipedia's lengths, with the settings that are the default."""
    counts = np.array(json.loads((kit / "packing" / "histograms.json").read_text())[name])
    layout = ShardLayout(max_seq_length=room, max_predictions_per_seq=80)
    packing = RowsPackedAtLoad(generate_data(layout, vocabulary_size=9))
    draw = np.random.default_rng(0)
    for _ in range(3):
        lengths = draw.choice(len(counts), packing.window, p=counts / counts.sum()) + 1
        rows = packing.rows_of(lengths)
        assert np.bincount(rows, lengths).max() <= room
        assert np.bincount(rows).max() <= packing.sequences_per_row
        assert 1 - lengths.sum() / (room * (rows.max() + 1)) < most_padding
