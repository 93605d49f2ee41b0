"""The kernel of byte-level BPE called directly, with what no caller of ours hands over."""

from array import array
from typing import Any

import pytest

from bertdata._native import kernels

CODE_POINTS = 0x110000


def make(**changes: Any) -> Any:
    """A kernel of the 256 bytes and one merge of a and b."""
    settings: dict[str, Any] = {
        "pattern": "gpt2",
        "digits": "",
        "prefix_space": False,
        "composes": True,
        "wide": False,
        "unknown": None,
        "units": list(range(256)),
        "merges": array("I", [ord("a"), ord("b"), 256]),
        "whole_words": [],
        "added": [(b"<x>", 257, True, False, False, False)],
        "lengths": array("I", [1] * 256 + [2, 0]),
        "characters": bytes(32) + b"\4" + bytes(CODE_POINTS - 33),
        "newer_marks": [],
        "never_composed": [],
    }
    return kernels.ByteBpe(**settings | changes)


def test_the_kernel_that_the_others_vary_is_sound() -> None:
    assert list(make().tokenize(b"ab <x>\n", b" ")[0]) == [256, 257]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pattern": "gpt3"}, "pattern: expected gpt2, llama3 or qwen2, found gpt3"),
        ({"digits": "some"}, "digits: expected each, runs or nothing, found some"),
        ({"units": list(range(255))}, "units: expected the ids of 256 bytes"),
        ({"units": [*range(255), 258]}, "id 258 has no length"),
        ({"merges": array("I", [1, 2, 258])}, "id 258 has no length"),
        ({"merges": array("I", [1, 2])}, "merges: expected three ids each"),
        ({"merges": array("H", [1, 2, 3])}, "merges: expected a flat buffer of 4-byte integers"),
        ({"whole_words": [(b"x", 258)]}, "id 258 has no length"),
        ({"added": [(b"<x>", 258, False, False, False, False)]}, "id 258 has no length"),
        ({"added": [(b"", 257, False, False, False, False)]}, "added tokens: one is empty"),
        ({"lengths": array("I", [1] * 70_000)}, "lengths: more than 65536 ids, which are not wide"),
        ({"characters": bytes(100)}, "characters: expected a byte for each code point"),
        ({"characters": b"\3" * CODE_POINTS}, "characters: one is of two kinds"),
    ],
)
def test_settings_out_of_range_are_a_value_error(changes, message):
    with pytest.raises(ValueError, match=message):
        make(**changes)


@pytest.mark.parametrize("name", ["newer_marks", "never_composed"])
def test_a_point_beyond_unicode_is_no_crash(name):
    try:
        make(**{name: [CODE_POINTS]})
    except IndexError:
        assert name == "newer_marks"


@pytest.mark.parametrize("byte", [0, 1, 2, 4, 8, 16, 25, 26, 28])
@pytest.mark.parametrize("pattern", ["gpt2", "llama3", "qwen2"])
@pytest.mark.parametrize("digits", ["", "each", "runs"])
def test_any_table_of_characters_ends_with_every_byte_in_a_token(byte, pattern, digits):
    table = bytes([byte]) * CODE_POINTS
    kernel = make(pattern=pattern, digits=digits, characters=table, prefix_space=True)
    text = "a 1é\u0301'll  \r\n <x> ab\0 \U0001f600"
    data = text.encode()
    starts, stops = map(list, kernel.tokenize_each(data, array("I", [len(data)]))[2:4])
    assert (starts[0], stops[-1]) == (0, len(text))
    assert all(start <= stop for start, stop in zip(starts[1:], stops, strict=False))


def test_wrong_lengths_of_tokens_lead_nowhere() -> None:
    for length in (0, 7, 1 << 31, (1 << 32) - 1):
        kernel = make(lengths=array("I", [length] * 258))
        found = kernel.tokenize_each("é ab".encode(), array("I", [5]))
        assert [max(column) <= 5 for column in found[2:4]] == [True, True]
        assert len(kernel.tokenize("é ab\nabé\n".encode(), b" ")[0]) > 5


def test_wrong_ends_of_texts_are_a_value_error() -> None:
    for ends in ([4], [2], [3, 2, 3]):
        with pytest.raises(ValueError, match="^ends: "):
            make().tokenize_each(b"abc", array("I", ends))


def test_bytes_that_are_not_utf8_are_told_by_their_place() -> None:
    with pytest.raises(kernels.InvalidUtf8) as error:
        make().tokenize(b"ab\xff", b" ")
    assert error.value.args == (2,)
    with pytest.raises(kernels.InvalidUtf8):
        make().tokenize_each("é".encode(), array("I", [1, 2]))
    with pytest.raises(kernels.InvalidUtf8):
        make().tokenize(b"ab", b"\xc3")
