"""The default of longest_span: 10 words, or what a given shortest_span and max_seq_length allow."""

import pytest

from bertdata.build.plan import choose_settings
from bertdata.errors import SettingsError


def longest_span(**given: int) -> int:
    (settings,) = choose_settings(None, None, {"objective": "span", **given})[1].values()
    return settings.as_json()["longest_span"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, 10),
        ({"max_seq_length": 10}, 10),
        ({"max_seq_length": 8}, 8),
        ({"shortest_span": 10}, 10),
        ({"shortest_span": 12}, 12),
        ({"longest_span": 3}, 3),
    ],
)
def test_the_default_gives_way_to_what_is_given(given, expected):
    assert longest_span(**given) == expected


@pytest.mark.parametrize(
    "given",
    [
        {"max_seq_length": 8, "longest_span": 10},
        {"shortest_span": 12, "longest_span": 10},
        {"shortest_span": 12, "max_seq_length": 8},
    ],
)
def test_given_values_that_contradict_each_other_are_refused(given):
    with pytest.raises(SettingsError, match="spans of "):
        longest_span(**given)
