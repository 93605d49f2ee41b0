"""Weights: split from paths, made whole numbers, refused in one line."""

from decimal import Decimal
from fractions import Fraction

import pytest

from bertdata.dataset.mixture.weights import find_weights, make_whole_weights, split_paths, split_weighted
from bertdata.errors import SettingsError


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A directory with two datasets, a part named with a star's pattern, and a name with a plus."""
    monkeypatch.chdir(tmp_path)
    for name in ("A", "B", "a+b", "part-01"):
        (tmp_path / name).mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A*0.7+B*0.3", [("A", "0.7"), ("B", "0.3")]),
        ("A * 7 + B * 3", [("A", "7"), ("B", "3")]),
        ("A*7,B*.5", [("A", "7"), ("B", ".5")]),
        ("A+B", [("A", None), ("B", None)]),
        ("a+b", [("a+b", None)]),
        ("gone*2", [("gone", "2")]),
        ("part-*", [("part-*", None)]),
        ("part-*1", [("part-*1", None)]),  # a pattern that finds a file
        ("part-* * 1", [("part-*", "1")]),
        ("part-**2", [("part-*", "2")]),
        ("A*2e-1", [("A", "2e-1")]),
        ("A*-1+B*1", [("A", "-1"), ("B", "1")]),
    ],
)
def test_a_weight_stands_behind_the_last_star(place, text, found):
    assert split_weighted(text) == found
    assert split_paths(text) == [path for path, _ in found]


@pytest.mark.parametrize(
    ("text", "weights"),
    [("A*0.7+B*0.3", (7, 3)), ("A*7+B*3", (7, 3)), ("A*2+B*1e-1", (20, 1)), ("A*4", (1,)), ("A+B", ())],
)
def test_weights_are_the_smallest_whole_numbers(place, text, weights):
    assert find_weights(text) == weights


def test_python_takes_numbers_of_any_kind():
    given = [("A", 0.1), ("B", 2), ("C", Fraction(1, 3)), ("D", Decimal("0.20")), ("E", "0.5")]
    assert make_whole_weights(given) == (3, 60, 10, 6, 15)


@pytest.mark.parametrize("weight", [0, -1, 0.0, "", "x", "1/3", "nan", float("inf"), True, None, "1e999999"])
def test_a_weight_that_is_no_positive_number_is_refused(weight):
    with pytest.raises(SettingsError, match=r"^B: its weight is .*, expected a positive number, as 0\.7$"):
        make_whole_weights([("A", 1), ("B", weight)])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A*0.7+B", r"^A\*0\.7\+B: B has no weight; give each dataset one, as A\*0\.7\+B\*0\.3$"),
        ("A*0.7+A*0.3", r"^A: comes twice in the mixture; give it once, with one weight$"),
        ("A*0+B*1", r"^A: its weight is 0, expected a positive number, as 0\.7$"),
        ("A*0.3333333+B*0.6666667", r"10000000 parts as whole numbers, at most 1000000 .* fewer digits$"),
    ],
)
def test_an_error_says_what_is_wrong_with_the_weights(place, text, said):
    with pytest.raises(SettingsError, match=said):
        find_weights(text)
