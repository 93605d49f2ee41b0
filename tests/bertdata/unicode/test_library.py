"""The library's character classes and NFC are those of tokenizers, asked about every code point."""

import sys
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, normalizers, pre_tokenizers

from bertdata.unicode import composition
from bertdata.unicode.tables import load_library_classes, load_unicode11

COMPOSE = normalizers.NFC().normalize_str
POINTS = [point for point in range(sys.maxunicode + 1) if not 0xD800 <= point < 0xE000]


TABLES = [
    (r"\p{L}", load_library_classes().letter),
    (r"\p{N}", load_library_classes().number),
    (r"\s", load_library_classes().space),
]
Table = tuple[tuple[int, int], ...]


def assert_matches(pattern: str, table: Table, points: Sequence[int]) -> None:
    """Among the points the pattern matches those of the table."""
    others = pre_tokenizers.Split(Regex(pattern), "removed")
    inside = {point for first, last in table for point in range(first, last + 1)}
    for place in range(0, len(points), 4096):
        some = points[place : place + 4096]
        left = others.pre_tokenize_str("".join(map(chr, some)))
        found = {point for _, (start, stop) in left for point in some[start:stop]}
        assert found == set(some) - inside


@pytest.mark.parametrize(("pattern", "table"), TABLES)
def test_classes_of_patterns_are_oniguruma_s(pattern, table):
    edges = {edge for first, last in table for edge in (first - 1, first, last, last + 1)}
    assert_matches(pattern, table, sorted(edges & set(POINTS)))


@pytest.mark.thorough
@pytest.mark.parametrize(("pattern", "table"), TABLES)
def test_classes_of_all_code_points_are_oniguruma_s(pattern, table):
    assert_matches(pattern, table, POINTS)


@pytest.mark.thorough
def test_nfc_of_every_character_is_the_library_s():
    for point in POINTS:
        assert composition.compose(chr(point))[0] == COMPOSE(chr(point)), hex(point)


def test_nfc_of_every_pair_that_composes_is_the_library_s():
    for point, parts in load_unicode11().decomposition.items():
        for text in (chr(point), parts, parts[::-1], f"q{parts}\u0323", f"{chr(point)}\u0334"):
            assert composition.compose(text)[0] == COMPOSE(text), hex(point)


marks = st.sampled_from(sorted(load_unicode11().combining)).map(chr)
letters = st.sampled_from("aeoué\u0344\u0958\u1100\u1161\u11a8\uac00\uac01ᾲΑ中")


@given(text=st.text(st.one_of(marks, marks, letters), max_size=12))
def test_nfc_of_runs_of_marks_is_the_library_s(text):
    composed, places = composition.compose(text)
    assert composed == COMPOSE(text)
    assert places == sorted(places)
    assert len(places) == len(composed)
