"""JSON that Python's parser lets through and no program of ours can use."""

import pytest

from bertdata.config.value_check import read_object
from bertdata.errors import ManifestError, SettingsError
from bertdata.io.json_text import parse_json_text
from bertdata.io.manifest_file import parse_json

DEEP = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DEEP, "its values are nested too deeply"),
        (b'{"name": "\\ud800.tfrecord"}', r"'\\ud800' is half of a pair"),
        (b'{"name\\uDC00": 1}', r"'\\udc00' is half of a pair"),
        (b'{"tokens": NaN}', "NaN is no JSON number"),
        (b'{"tokens": -Infinity}', "-Infinity is no JSON number"),
        (b'{"tokens": ' + b"1" * 5000 + b"}", "Exceeds the limit"),
        (b'{"a": "\xff"}', "utf-8"),
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


def test_a_whole_pair_is_a_character() -> None:
    assert parse_json_text(b'"\\ud83d\\ude00 \\\\ud800"') == "\U0001f600 \\ud800"
