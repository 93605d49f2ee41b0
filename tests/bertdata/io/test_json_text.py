"""JSON that Python's parser lets through and no program of ours can use."""

import math

import pytest

from bertdata.config.value_check import read_object
from bertdata.errors import ManifestError, SettingsError
from bertdata.io import json_text
from bertdata.io.json_text import NumberText, parse_json_text
from bertdata.io.manifest_file import parse_json

DEEP = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DEEP, "its values are nested more than 500 deep"),
        (b'{"name": "\\ud800.tfrecord"}', r"'\\ud800' is half of a pair"),
        (b'{"name\\uDC00": 1}', r"'\\udc00' is half of a pair"),
        (b'{"tokens": NaN}', "NaN is no JSON number"),
        (b'{"tokens": -Infinity}', "-Infinity is no JSON number"),
        (b'{"tokens": ' + b"1" * 5000 + b"}", "an integer of 5,000 digits, expected at most 300"),
        (b'{"tokens": 1e999}', "1e999 is larger than any number that can be stored"),
        (b'{"a":\n"\xff"}', "line 2: byte 0xff at offset 7 is not UTF-8"),
        (b'{"a": "\xed\xa0\x80"}', "line 1: byte 0xed at offset 7 is not UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "line 1: byte 0xff at offset 0 is not UTF-8"),
        (b"", "Expecting value"),
    ],
)
def test_it_is_refused_in_one_line(text: bytes, message: str, tmp_path) -> None:
    with pytest.raises(ValueError, match=message):
        parse_json_text(text)
    with pytest.raises(ManifestError, match=f"^manifest.json: is not JSON: .*{message}") as raised:
        parse_json(text, "manifest.json")
    assert "\n" not in str(raised.value)
    (tmp_path / "config.json").write_bytes(text)
    with pytest.raises(SettingsError, match=f"config.json: is not JSON: .*{message}"):
        read_object(str(tmp_path / "config.json"))


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def test_values_are_nested_500_deep_and_no_deeper() -> None:
    parse_json_text(nested(500))
    with pytest.raises(ValueError, match="nested more than 500 deep"):
        parse_json_text(nested(501))
    assert len(parse_json_text("[" + ",".join(["[]"] * 10_000) + "]")) == 10_000


def test_an_integer_has_as_many_digits_as_a_float_can_have() -> None:
    assert parse_json_text("-" + "9" * 299) == -int("9" * 299)
    assert parse_json_text("1000000000000000019884624838656") == int(1e30)  # transformers' longest model


def test_a_lenient_reader_keeps_every_number() -> None:
    value = parse_json_text(f"[{'7' * 5000}, 1e999, -1e999, 3]", any_number=True)
    assert value == [NumberText("7" * 5000), NumberText("1e999"), NumberText("-1e999"), 3]
    assert str(value[0]) == "7" * 5000
    assert math.isnan(parse_json_text("NaN", any_number=True))


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert parse_json_text(b"\xef\xbb\xbf[1]") == [1]


def test_a_larger_file_is_refused_before_it_is_parsed(tmp_path, monkeypatch) -> None:
    (tmp_path / "a.json").write_bytes(b"[1234]")
    monkeypatch.setattr(json_text, "MOST_BYTES", 5)
    with pytest.raises(ValueError, match="the file is larger than"):
        json_text.read_json(tmp_path / "a.json")


def test_a_whole_pair_is_a_character() -> None:
    assert parse_json_text(b'"\\ud83d\\ude00 \\\\ud800"') == "\U0001f600 \\ud800"
