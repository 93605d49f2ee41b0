"""Turns of a mixture's sources: shares at every place, independence, the rule worked by hand."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertdata.dataset.mixture.turns import Turns, has_fair_shares, order_by_deadlines, order_by_midpoints

WEIGHTS = st.lists(st.integers(1, 40), min_size=1, max_size=8)


def order(weights: list[int], count: int, start: int = 0) -> list[int]:
    return Turns(weights).find_sources(np.arange(start, start + count))[0].tolist()


def by_the_words(weights: list[int]) -> list[int]:
    """Midpoints as the module's first lines say them, with exact fractions."""
    turns = [
        (Fraction(2 * number + 1, 2 * weight), -weight, source)
        for source, weight in enumerate(weights)
        for number in range(weight)
    ]
    return [source for *_, source in sorted(turns)]


def test_seven_to_three_worked_by_hand():
    # midpoints of A: 1/14 3/14 5/14 7/14 9/14 11/14 13/14; of B: 1/6 3/6 5/6; at 1/2 the larger weight first
    assert order([7, 3], 20) == [0, 1, 0, 0, 0, 1, 0, 0, 1, 0] * 2


def test_deadlines_worked_by_hand():
    # 97 to 1 to 1 to 1: by midpoints the three small ones would follow each other in the middle
    assert not has_fair_shares(order_by_midpoints([97, 1, 1, 1]), [97, 1, 1, 1])
    # of 6 places, turn 0 of source 0 is to come before place 2, turn 1 from 2 on before 4, turn 2 from 4 on
    # before 6; each other source before 6, and by its midpoint before turn 2
    assert order_by_deadlines([3, 1, 1, 1]).tolist() == [0, 1, 0, 2, 3, 0]


@given(weights=WEIGHTS)
def test_each_source_is_within_one_example_of_its_share_at_every_prefix(weights):
    total = sum(weights)
    counts = np.zeros(len(weights), int)
    for place, source in enumerate(order(weights, 2 * total + 3)):
        counts[source] += 1
        for own, weight in zip(counts.tolist(), weights, strict=True):
            assert abs(Fraction((place + 1) * weight, total) - own) < 1


@given(weights=st.lists(st.integers(1, 400), min_size=1, max_size=3))
def test_up_to_three_sources_midpoints_always_hold_the_shares(weights):
    assert has_fair_shares(order_by_midpoints(weights), weights)


@given(weights=WEIGHTS)
def test_midpoints_are_those_of_exact_fractions(weights):
    assert order_by_midpoints(weights).tolist() == by_the_words(weights)


@pytest.mark.parametrize("pair", list(permutations((999_983, 999_979, 500_000, 2), 2)))
def test_midpoints_of_large_weights_are_in_exact_order(pair):
    found = order_by_midpoints(pair)
    numbers = np.empty(len(found), np.int64)
    for source in range(2):
        numbers[found == source] = np.arange(pair[source])
    weights = np.array(pair, np.int64)[found]
    above, below = 2 * numbers + 1, weights
    assert (above[:-1] * below[1:] <= above[1:] * below[:-1]).all()


@given(weights=WEIGHTS)
def test_deadlines_hold_the_shares_of_any_weights(weights):
    found = order_by_deadlines(weights)
    assert np.bincount(found, minlength=len(weights)).tolist() == weights
    assert has_fair_shares(found, weights)


@given(
    weights=st.lists(st.integers(1, 30), min_size=2, max_size=3),
    removed=st.integers(0, 2),
    scale=st.integers(1, 5),
)
def test_a_source_more_leaves_the_order_of_the_others_among_themselves(weights, removed, scale):
    removed %= len(weights)
    kept = [number for number in range(len(weights)) if number != removed]
    among = [source for source in order(weights, 3 * sum(weights)) if source != removed]
    alone = [kept[source] for source in order([scale * weights[number] for number in kept], len(among))]
    assert among == alone


@given(weights=WEIGHTS, start=st.integers(0, 10**9), data=st.data())
@settings(max_examples=50)
def test_any_place_is_found_at_once(weights, start, data):
    turns = Turns(weights)
    counts = turns.count_turns(start)
    assert counts.sum() == start
    sources, numbers = turns.find_sources(np.arange(start, start + 50))
    for place, source, number in zip(range(50), sources.tolist(), numbers.tolist(), strict=True):
        assert number == counts[source]
        assert turns.find_place(source, number) == start + place
        counts[source] += 1
    assert (turns.count_turns(start + 50) == counts).all()


def test_holding_the_shares_is_no_empty_claim():
    assert not has_fair_shares(np.array([0, 0, 1, 1]), [2, 2])
    assert not has_fair_shares(np.array([1, 1, 0, 0]), [2, 2])
    assert has_fair_shares(np.array([0, 1, 1, 0]), [2, 2])
