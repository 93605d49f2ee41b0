"""Keyed permutations, and the place of each example in the packed rows."""

from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.packing.methods import plan_packs
from bertdata.packing.pack_plan import make_plan
from bertdata.packing.permutation import Permutations, derive_round_keys, permute_number
from bertdata.packing.placement import Numbering, Placement

KEYS = derive_round_keys("some name")


def arrays_of(size: int, name: str = "some name") -> list[int]:
    """The permutation of all numbers below the size, by the fast form."""
    both = Permutations([3, size], ["another", name])
    return both.permute(np.ones(size, np.intp), np.arange(size)).tolist()


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 16, 17, 100, 255, 256, 257, 1000])
def test_every_number_has_a_place_of_its_own_and_both_forms_agree(size):
    found = [permute_number(number, size, KEYS) for number in range(size)]
    assert sorted(found) == list(range(size))
    assert arrays_of(size) == found


@given(st.integers(1, 1 << 60), st.lists(st.integers(0, (1 << 60) - 1), min_size=1, max_size=20), st.text())
def test_both_forms_agree_on_large_sizes(size, numbers, name):
    below = [number % size for number in numbers]
    places = Permutations([size], [name]).permute(np.zeros(len(below), np.intp), np.array(below))
    assert places.tolist() == [permute_number(number, size, derive_round_keys(name)) for number in below]


def test_places_do_not_change_between_versions():
    assert [
        permute_number(number, 10, derive_round_keys("12345/length/128")) for number in range(10)
    ] == EXPECTED


EXPECTED = [3, 0, 2, 6, 7, 5, 1, 4, 9, 8]


def test_another_name_is_another_permutation_and_neighbours_part():
    first, second = arrays_of(10_000), arrays_of(10_000, "another name")
    equal = sum(a == b for a, b in zip(first, second, strict=True))
    assert equal < 20  # one is expected
    steps = np.abs(np.diff(first))
    assert 3100 < steps.mean() < 3560  # a third of the size is expected
    assert (steps == 1).sum() < 20


def test_the_examples_of_one_length_are_numbered_through_all_batches():
    numbering = Numbering(np.array([0, 5, 0, 2]))
    assert numbering.add(np.array([3, 1, 3], np.uint16)).tolist() == [2, 5, 3]
    assert numbering.add(np.array([2, 3, 1], np.uint16)).tolist() == [0, 4, 6]


def place_all(lengths: np.ndarray, plan, seed: int, batch: int) -> list[tuple[int, int]]:
    placement, numbering = Placement(plan, seed), Numbering(np.zeros(plan.max_seq_length + 1, np.int64))
    found = []
    for start in range(0, len(lengths), batch):
        some = lengths[start : start + batch]
        places = placement.find(some, numbering.add(some))
        found += zip(places.rows.tolist(), places.places.tolist(), strict=True)
    return found


@given(st.lists(st.integers(1, 24), min_size=1, max_size=200), st.integers(0, 9), st.integers(1, 50))
def test_every_example_has_a_place_and_every_row_holds_one_of_the_plans(lengths, seed, batch):
    given_lengths = np.array(lengths, np.uint16)
    plan = plan_packs(np.bincount(given_lengths, minlength=25), most=3, method="lpfhp")
    places = place_all(given_lengths, plan, seed, batch)
    assert places == place_all(given_lengths, plan, seed, 1000)
    rows: dict[int, dict[int, int]] = {}
    for (row, place), length in zip(places, lengths, strict=True):
        assert place not in rows.setdefault(row, {})
        rows[row][place] = length
    assert sorted(rows) == list(range(plan.rows))
    found: dict[tuple[int, ...], int] = {}
    for row in rows.values():
        assert sorted(row) == list(range(len(row)))
        key = tuple(row[place] for place in range(len(row)))
        found[key] = found.get(key, 0) + 1
    assert make_plan(24, found) == plan


def test_a_place_is_what_the_plan_and_the_two_permutations_say():
    plan = make_plan(8, {(2, 3, 3): 4, (3, 5): 5, (8,): 2})
    rows = [lengths for lengths, number in plan.rows_by_lengths for _ in range(number)]
    slots = [
        (row, place)
        for start, number in zip(accumulate((4, 5), initial=0), (4, 5), strict=False)
        for place in range(3)
        for row in range(start, start + number)
        if rows[row][place : place + 1] == (3,)
    ]
    lengths = np.full(13, 3, np.uint16)
    expected = []
    for number in range(13):
        row, place = slots[permute_number(number, 13, derive_round_keys("77/length/3"))]
        expected.append((permute_number(row, 11, derive_round_keys("77/rows")), place))
    assert place_all(lengths, plan, 77, 5) == expected


def test_neighbours_of_a_shard_come_to_rows_far_apart():
    rng = np.random.default_rng(3)
    lengths = rng.integers(1, 65, 20_000).astype(np.uint16)
    plan = plan_packs(np.bincount(lengths, minlength=65), most=3)
    rows = np.array([row for row, _ in place_all(lengths, plan, 1, 4096)])
    steps = np.abs(np.diff(rows))
    assert (steps == 0).sum() < 20  # two are expected by chance
    assert 0.32 < steps.mean() / plan.rows < 0.345
