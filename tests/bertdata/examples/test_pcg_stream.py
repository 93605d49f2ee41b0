"""The streams of NumPy's generators. The draws below are those of NumPy 2.4.6 itself."""

import hashlib
import struct

import pytest

from bertdata.examples.pcg_stream import DxsmStream, PcgStream

DRAWS = [
    (
        0,
        [
            0.6369616873214543,
            8,
            0.04097352393619469,
            269,
            [1, 15, 0, 3, 12],
            "28794ce6f86d396ce30e74d6269459bc",
            [5, 2, 6, 1, 7, 3, 4, 0],
            "5956b825bff37c581f6238f2a27d3ac2",
        ],
    ),
    (
        42,
        [
            0.7739560485559633,
            11,
            0.8585979199113825,
            438,
            [1, 11, 18, 3, 10],
            "8ad9c149b5a8c4677ae9ccf58d662251",
            [7, 6, 0, 4, 1, 2, 3, 5],
            "0687b4791e1680ec4c9a847bd432159b",
        ],
    ),
    (
        2**40 + 7,
        [
            0.829812891829413,
            10,
            0.15379071585298754,
            255,
            [14, 11, 8, 1, 15],
            "4385f8a3037e0266b8e5806a017ca7ac",
            [5, 1, 6, 4, 0, 2, 7, 3],
            "f431e452c2266683d2006f9fa0c8b7ff",
        ],
    ),
    (
        2**130 + 5,
        [
            0.16471452369391282,
            5,
            0.2106154818761682,
            188,
            [10, 14, 5, 2, 9],
            "aa64c048155dca48e616cc6f7af8ae6b",
            [3, 1, 2, 7, 4, 0, 5, 6],
            "6dd1ca043828adc4ee433e889fb7fa67",
        ],
    ),
]


@pytest.mark.parametrize(("seed", "expected"), DRAWS)
def test_draws_are_those_of_numpy(seed, expected):
    pcg = PcgStream(seed)
    found = [pcg.random(), pcg.below(17), pcg.random(), pcg.below(1000), pcg.choice(20, 5)]
    found.append(md5(pcg.choice(20_000, 500)))
    dxsm = DxsmStream(seed)
    assert [*found, dxsm.permutation(8), md5(dxsm.permutation(3000))] == expected


def test_the_second_half_of_an_output_is_kept_while_doubles_are_drawn():
    plain, between = PcgStream(42), PcgStream(42)
    first = plain.long()
    assert between.word() == first & 0xFFFFFFFF
    assert between.random() == plain.random()
    assert between.word() == first >> 32


def test_nothing_is_drawn_for_a_limit_of_one():
    stream, other = PcgStream(7), PcgStream(7)
    assert stream.below(1) == 0
    assert stream.long() == other.long()


def md5(numbers: list[int]) -> str:
    return hashlib.md5(struct.pack(f"<{len(numbers)}q", *numbers)).hexdigest()
