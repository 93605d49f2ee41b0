"""ModernBERT's packer, masks and order: kernel beside twin, on generated sequences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata._native import kernels
from bertdata.loaders.modernbert.engines import make_epoch_masker, make_packer
from bertdata.loaders.modernbert.epoch import find_order
from bertdata.loaders.modernbert.masks import compute_stream_state
from bertdata.loaders.modernbert.settings import ModernBertSettings

ENGINES = ("native", "python")
MASK, PADDING = 5, 3


@st.composite
def packings(draw):
    """Settings of a packer, and lengths of sequences, some of none."""
    size = draw(st.integers(1, 4))
    settings = ModernBertSettings(
        batch_size=size * draw(st.integers(1, 5)),
        micro_batch_size=size,
        max_seq_len=draw(st.integers(1, 12)),
        buffer_size=draw(st.integers(21, 60)),
    )
    lengths = st.lists(st.integers(0, settings.max_seq_len), max_size=120)
    return settings, np.array(draw(lengths), np.int64)


def packed(packer, rows):
    found = packer.pack(rows)
    return found and ([*map(int, found.places)], [*map(int, found.ends)])


@given(packings(), st.data())
def test_the_kernel_packs_as_its_twin(case, data):
    settings, lengths = case
    native, python = (make_packer(lengths, settings, engine) for engine in ENGINES)
    while True:
        rows = data.draw(st.integers(1, settings.rows))
        found = packed(native, rows)
        assert found == packed(python, rows)
        assert native.state == python.state
        if found is None:
            break
        again = make_packer(lengths, settings, data.draw(st.sampled_from(ENGINES)))
        again.state = native.state
        native = again if type(again) is type(native) else native
        assert again.state == python.state


@given(packings())
def test_packed_rows_hold_each_sequence_once_and_no_more_than_fits(case):
    settings, lengths = case
    packer, seen = make_packer(lengths, settings, "python"), []
    while (found := packer.pack(settings.rows)) is not None:
        for row in np.split(np.array(found.places), found.ends[:-1]):
            assert 0 < lengths[row].sum() <= settings.width
        seen += found.places
    assert len(seen) == len(set(seen))
    assert len(seen) <= np.count_nonzero(lengths)


@given(
    st.lists(st.lists(st.integers(0, 40), max_size=9), min_size=1, max_size=4),
    st.sampled_from([np.uint16, np.uint32]),
    st.floats(0.01, 1),
    st.integers(0, 2**62),
    st.integers(1, 3),
)
def test_the_kernel_masks_as_its_twin_and_leaves_the_stream_at_the_same_point(
    rows, kind, prob, seed, batches
):
    """Rows of an odd number of cells keep half an output."""
    settings = ModernBertSettings(
        batch_size=1, micro_batch_size=1, max_seq_len=9, mask_prob=prob, mask_seed=seed
    )
    both = [
        make_epoch_masker(1, settings, mask_id=MASK, padding_id=PADDING, engine=engine) for engine in ENGINES
    ]
    ids, ends = np.array([id for row in rows for id in row], kind), np.cumsum([len(row) for row in rows])
    cells = redrawn = 0
    for _ in range(batches):
        native, python = (masks.draw(ids, ends, 9) for masks in both)
        for one, other in zip(native[:3], python[:3], strict=True):
            assert one.tolist() == other.tolist()
        assert (native.redrawn, native.tokens) == (python.redrawn, python.tokens)
        cells, redrawn = cells + 9 * len(rows), redrawn + native.redrawn
        assert both[0].state == both[1].state == compute_stream_state(seed + 1, cells, redrawn)
        both[0].state = both[0].state


@pytest.mark.parametrize("engine", ENGINES)
def test_the_streams_state_is_found_where_integers_are_redrawn(engine):
    """Ids near 2**32 reject almost half of the integers."""
    settings = ModernBertSettings(batch_size=1, micro_batch_size=1, max_seq_len=7, mask_seed=11)
    masks = make_epoch_masker(0, settings, mask_id=2**31, padding_id=0, engine=engine)
    redrawn = 0
    for number in range(1, 40):
        redrawn += masks.draw(np.array([2**31, 4], np.uint32), np.array([2]), 7).redrawn
        assert masks.state == compute_stream_state(11, 7 * number, redrawn)
    assert redrawn > 100


@given(st.integers(0, 300), st.integers(1, 7), st.booleans(), st.booleans(), st.integers(0, 2**62))
def test_the_kernel_orders_as_its_twin_and_ranks_share_all_examples(count, world, drop_last, shuffle, seed):
    shares = []
    for rank in range(world):
        settings = ModernBertSettings(
            batch_size=1,
            micro_batch_size=1,
            max_seq_len=1,
            order_seed=seed,
            shuffle=shuffle,
            drop_last=drop_last,
            rank=rank,
            world=world,
        )
        found, same = (find_order(count, 2, settings, engine).tolist() for engine in ENGINES)
        assert found == same
        shares.append(found)
    assert len(set(map(len, shares))) == 1
    dealt = {number for share in shares for number in share}
    assert dealt <= set(range(count))
    lost = count % world if drop_last else 0
    assert len(dealt) == count - lost


def test_an_order_without_shuffling_is_dealt_in_turn_and_padded_from_its_start():
    def order(rank, drop_last):
        settings = ModernBertSettings(
            batch_size=1,
            micro_batch_size=1,
            max_seq_len=1,
            shuffle=False,
            drop_last=drop_last,
            rank=rank,
            world=3,
        )
        return find_order(7, 0, settings).tolist()

    assert [order(rank, False) for rank in range(3)] == [[0, 3, 6], [1, 4, 0], [2, 5, 1]]
    assert [order(rank, True) for rank in range(3)] == [[0, 3], [1, 4], [2, 5]]


RULE = {"mask_prob": 0.3, "mask_id": MASK, "padding_id": PADDING}


@pytest.mark.parametrize(
    ("ids", "ends", "cells", "rule", "said"),
    [
        ([1, 2], [3], 12, {}, "not the end"),
        ([1, 2], [2], 3, {}, "more than its cells"),
        ([1, 2], [2], 13, {}, "three times"),
        ([1, 2], [2, 1], 24, {}, "ascend"),
        ([1, 2], [], 12, {}, "three times"),
        ([1, 2], [2], 12, {"mask_prob": 1.5}, "mask_prob"),
        ([1, 2], [2], 12, {"mask_id": -1}, "0 or more"),
        ([1, 2**32 - 1], [2], 12, {"mask_prob": 1e-9}, "less than"),
    ],
)
def test_the_kernel_refuses_rows_that_do_not_fit(ids, ends, cells, rule, said):
    masks = kernels.ModernBertMasks(1)
    made = np.zeros(cells, np.int64)
    with pytest.raises(ValueError, match=said):
        masks.draw(np.array(ids, np.uint32), np.array(ends, np.int64), made, **(RULE | rule))


def test_the_kernel_refuses_lengths_and_states_that_do_not_fit():
    lengths, sizes = np.array([3, 4], np.uint32), {"batch_size": 1, "buffer_size": 5}
    with pytest.raises(ValueError, match="longer than a row"):
        kernels.ModernBertPacker(lengths, **sizes, width=3)
    packer = kernels.ModernBertPacker(lengths, **sizes, width=4)
    for state in ((3, []), (1, [2])):
        with pytest.raises(ValueError, match="state"):
            packer.set_state(*state)


@pytest.mark.parametrize("largest", [50_000, 2**31, 2**32 - 2])
def test_rows_of_several_chunks_are_masked_as_by_the_twin_with_integers_redrawn(largest):
    settings = ModernBertSettings(batch_size=2, micro_batch_size=1, max_seq_len=1533, mask_seed=2)
    ids = np.arange(1, 3001, dtype=np.uint32)
    drawn = []
    for engine in ENGINES:
        masks = make_epoch_masker(0, settings, mask_id=largest, padding_id=0, engine=engine)
        for _ in range(2):
            made = masks.draw(ids, np.array([1500, 3000]), 1533)
            drawn.append([*(one.tolist() for one in made[:3]), made.redrawn, made.tokens, masks.state])
    assert drawn[:2] == drawn[2:]
    assert (drawn[0][3] > 100) == (largest == 2**31)


@given(st.lists(st.lists(st.integers(0, 60_000), max_size=8), min_size=1, max_size=20), st.data())
def test_the_kernel_takes_sequences_in_any_order(rows, data):
    numbers = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=30))
    most, kind = data.draw(st.integers(1, 9)), data.draw(st.sampled_from([np.uint16, np.uint32]))
    ids = np.array([id for row in rows for id in row], kind)
    bounds = np.cumsum([0, *map(len, rows)])
    found = np.asarray(kernels.take_sequences(ids, bounds, np.array(numbers, np.int64), most))
    assert found.dtype == kind
    assert found.tolist() == [id for number in numbers for id in rows[number][:most]]


@pytest.mark.parametrize(
    ("bounds", "number", "most", "said"),
    [
        ([0, 2, 3], 2, 1, "not there"),
        ([0, 2, 3], -1, 1, "not there"),
        ([0, 2, 4], 1, 1, "outside"),
        ([0, 2, 1], 1, 1, "outside"),
        ([0, 2, 3], 1, 0, "most"),
        ([], 0, 1, "not there"),
    ],
)
def test_the_kernel_takes_no_sequences_outside_the_ids(bounds, number, most, said):
    with pytest.raises(ValueError, match=said):
        kernels.take_sequences(np.zeros(3, np.uint16), np.array(bounds, np.int64), np.array([number]), most)
