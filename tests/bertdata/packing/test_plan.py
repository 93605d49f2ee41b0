"""Plans of packed rows: efficiency, the bound, every example in its place, and which input is refused."""

import hashlib
import json
import time
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.errors import SettingsError, ShardError
from bertdata.packing.linear_program import bound_rows_below
from bertdata.packing.methods import METHODS, plan_packs
from bertdata.packing.pack_plan import Histogram, PackPlan, count_lengths
from bertdata.packing.patterns import fill_slots, list_full_patterns, read_pattern_lengths

EFFICIENCIES = [  # of FACTS: longest-pack-first as measured with the original, the program's as they must be
    ("wikipedia_512", "lp", 3, 0.9988, 0.998839),
    ("wikipedia_512", "lpfhp", 3, 0.89485, 0.89495),
    ("wikipedia_512", "lpfhp", 12, 0.998125, 0.998135),
    ("wikipedia_512", "lpfhp", 512, 0.999485, 0.999495),
    ("squad_1_1_384", "lp", 3, 0.98654, 0.98801),
    ("squad_1_1_384", "lpfhp", 3, 0.97735, 0.97745),
]
MD5S = {
    ("wikipedia_512", 3): "cb3e0d9c",
    ("wikipedia_512", 2): "ba8164a1",
    ("wikipedia_512", 4): "e28949c1",
    ("squad_1_1_384", 3): "96eb41a3",
}
"""Of plans that SciPy 1.15.3, 1.17.1 and 1.18.1 on Python 3.10 to 3.13 made alike."""


def published(kit: Path, name: str) -> Histogram:
    """A published histogram; item 0 counts examples of no tokens, of which there are none."""
    return np.array([0, *json.loads((kit / "packing" / "histograms.json").read_text())[name]])


def digest(plan: PackPlan) -> str:
    return hashlib.md5(repr(plan.rows_by_lengths).encode()).hexdigest()[:8]


@pytest.mark.parametrize(("name", "method", "most", "at_least", "at_most"), EFFICIENCIES)
def test_published_histograms_are_packed_as_well_as_they_should_be(
    kit, name, method, most, at_least, at_most
):
    histogram = published(kit, name)
    start = time.process_time()
    plan = plan_packs(histogram, most=most, method=method)
    assert time.process_time() - start < 10
    assert at_least <= plan.efficiency <= at_most
    assert (plan.histogram() == histogram).all()
    assert plan.most_in_a_row <= most


@pytest.mark.parametrize(("name", "most"), MD5S)
def test_the_plan_is_the_same_on_every_machine(kit, name, most):
    assert digest(plan_packs(published(kit, name), most=most)) == MD5S[name, most]


def test_the_bound_is_that_of_the_published_histograms(kit):
    for name, expected in (("wikipedia_512", "99.8838%"), ("squad_1_1_384", "98.8007%")):
        histogram = published(kit, name)
        tokens = int((histogram * np.arange(len(histogram))).sum())
        assert f"{tokens / bound_rows_below(histogram, 3) / (len(histogram) - 1):.4%}" == expected


def fewest(histogram: list[int], most: int) -> int:
    """The fewest rows, by trying: the longest example with every set of others that fits."""
    left = [length for length, number in enumerate(histogram) for _ in range(number)]
    if not left:
        return 0
    longest, others, best = left[-1], left[:-1], len(left)
    for number in range(min(most - 1, len(others)) + 1):
        for chosen in {*combinations_with_replacement(sorted(set(others)), number)}:
            rest = list(others)
            try:
                for length in chosen:
                    rest.remove(length)
            except ValueError:
                continue
            if longest + sum(chosen) < len(histogram):
                best = min(best, 1 + fewest([rest.count(n) for n in range(len(histogram))], most))
    return best


@given(st.lists(st.integers(0, 2), min_size=6, max_size=6).filter(any), st.integers(1, 4))
def test_no_packing_beats_the_bound_and_the_program_comes_near_it(counts, most):
    histogram = np.array([0, *counts])
    best = fewest(histogram.tolist(), most)
    assert bound_rows_below(histogram, most) <= best + 1e-6
    for method in METHODS if most <= 3 else ("lp", "lpfhp"):
        plan = plan_packs(histogram, most=most, method=method)
        assert (plan.histogram() == histogram).all()
        assert plan.most_in_a_row <= most
        assert all(sum(lengths) <= 6 for lengths, _ in plan.rows_by_lengths)
        assert all(lengths == tuple(sorted(lengths)) for lengths, _ in plan.rows_by_lengths)
        assert plan.rows >= best


def test_least_squares_come_near_what_was_published(kit):
    histogram = np.zeros(129, np.int64)
    wikipedia = published(kit, "wikipedia_512")
    histogram[1:] = wikipedia[1:].reshape(128, 4).sum(axis=1)
    plan = plan_packs(histogram, most=3, method="nnls")
    assert plan.efficiency > 0.995
    assert (plan.histogram() == histogram).all()


def test_full_patterns_are_all_sums_of_up_to_three_lengths():
    for most in (1, 2, 3, 7):
        expected = {
            tuple(chosen)
            for number in range(1, min(most, 3) + 1)
            for chosen in combinations_with_replacement(range(1, 13), number)
            if sum(chosen) == 12
        }
        found = [read_pattern_lengths(pattern) for pattern in list_full_patterns(12, most)]
        assert set(found) == expected
        assert len(found) == len(expected)


def test_surplus_slots_take_the_next_shorter_examples_or_stay_empty():
    histogram = np.array([0, 0, 2, 0, 1, 0])  # two of length 2, one of length 4; rows of 5
    slots = {(1, 4): 2, (5,): 1}
    down = fill_slots(slots, histogram, 2, hand_down=True)
    assert down.rows_by_lengths == (((2,), 2), ((4,), 1))  # 5 becomes 4; both 4 become 2, through 3
    assert fill_slots(slots, histogram, 2, hand_down=False).rows_by_lengths == (((2, 2), 1), ((4,), 1))


@pytest.mark.parametrize(
    ("most", "method", "length", "message"),
    [
        (3, "best", 8, "method is 'best', expected one of lp, lpfhp, nnls"),
        (4, "nnls", 8, "method is nnls and max_sequences_per_pack 4, at most 3 allowed"),
        (3, "nnls", 600, "method is nnls and rows have 600 positions, at most 512 allowed"),
        (3, "lp", 1025, "method is lp and rows have 1025 positions, at most 1024 allowed"),
    ],
)
def test_what_a_method_cannot_do_is_refused(most, method, length, message):
    with pytest.raises(SettingsError, match=message):
        plan_packs(np.ones(length + 1, np.int64), most=most, method=method)


@pytest.mark.parametrize("wrong", [0, 9])
def test_an_example_that_no_row_can_hold_is_named(wrong):
    with pytest.raises(ShardError, match=f"^part-0: record 2: {wrong} tokens, expected 1 to 8$"):
        count_lengths(np.array([8, 1, wrong, 0], np.uint16), 8, "part-0")
    assert count_lengths(np.array([8, 1, 8], np.uint16), 8, "part-0").tolist() == [0, 1, *[0] * 6, 2]


def test_the_order_of_the_examples_makes_no_difference(kit):
    rng = np.random.default_rng(7)
    lengths = np.repeat(np.arange(385), published(kit, "squad_1_1_384")).astype(np.uint16)
    shuffled = count_lengths(rng.permutation(lengths), 384, "part-0")
    assert (shuffled == published(kit, "squad_1_1_384")).all()
    assert digest(plan_packs(shuffled, most=3)) == MD5S["squad_1_1_384", 3]
