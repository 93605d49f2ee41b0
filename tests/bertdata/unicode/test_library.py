"""The library's character classes and NFC are those of tokenizers, asked about every code point."""

import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, normalizers, pre_tokenizers

from bertdata.unicode import composition, library, unicode11

COMPOSE = normalizers.NFC().normalize_str
POINTS = [point for point in range(sys.maxunicode + 1) if not 0xD800 <= point < 0xE000]


@pytest.mark.parametrize(
    ("pattern", "table"),
    [(r"\p{L}", library.LETTER), (r"\p{N}", library.NUMBER), (r"\s", library.SPACE)],
)
def test_classes_of_patterns_are_oniguruma_s(pattern, table):
    found = pre_tokenizers.Split(Regex(f"{pattern}+"), "isolated")
    inside = {point for first, last in table for point in range(first, last + 1)}
    edges = sorted({point for first, last in table for point in (first - 1, first, last, last + 1)})
    edges = [point for point in edges if 0 <= point <= sys.maxunicode and not 0xD800 <= point < 0xE000]
    for place in range(0, len(edges), 512):
        points = edges[place : place + 512]
        text = "!".join(map(chr, points))
        alone = {start for piece, (start, stop) in found.pre_tokenize_str(text) if stop - start == 1}
        apart = {
            points[start // 2]
            for start in alone
            if start % 2 == 0 and re.fullmatch(r"\W|\w", text[start], re.DOTALL)
        }
        for point in points:
            is_alone = point in apart
            assert is_alone or point not in inside, hex(point)


@pytest.mark.thorough
def test_nfc_of_every_character_is_the_library_s():
    for point in POINTS:
        assert composition.compose(chr(point))[0] == COMPOSE(chr(point)), hex(point)


def test_nfc_of_every_pair_that_composes_is_the_library_s():
    for point, parts in unicode11.DECOMPOSITION.items():
        for text in (chr(point), parts, parts[::-1], f"q{parts}\u0323", f"{chr(point)}\u0334"):
            assert composition.compose(text)[0] == COMPOSE(text), hex(point)


marks = st.sampled_from(sorted(unicode11.COMBINING)).map(chr)
letters = st.sampled_from("aeoué\u0344\u0958\u1100\u1161\u11a8\uac00\uac01ᾲΑ中")


@given(text=st.text(st.one_of(marks, marks, letters), max_size=12))
def test_nfc_of_runs_of_marks_is_the_library_s(text):
    composed, places = composition.compose(text)
    assert composed == COMPOSE(text)
    assert places == sorted(places)
    assert len(places) == len(composed)
