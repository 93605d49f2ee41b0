"""TOML that Python's parser takes minutes for, or lets through though no program of ours can use it."""

import time

import pytest

from bertdata.errors import SettingsFileError
from bertdata.io.toml_text import TomlFile

TEXT = '''# a comment = 1
a = 1
b = """x
[no]
c = 2
"""
  "q.r" = "it's"  # [no]
[t]
k.l.m = [
 1, # ]
 "]", { z = 2 },
]
[[u.v]]
w = 3
[[u.v]]
y = \'\'\'[t]\'\'\'\'
n = { p = { q = 4 } }
'''

PLACES = {
    ("a",): 2,
    ("b",): 3,
    ("q.r",): 7,
    ("t",): 8,
    ("t", "k", "l", "m"): 9,
    ("u", "v"): 13,
    ("u", "v", "w"): 14,
    ("u", "v", "y"): 16,
    ("u", "v", "n", "p", "q"): 17,
}


@pytest.fixture
def file_of(tmp_path):
    def make(text: str | bytes) -> TomlFile:
        path = tmp_path / "a.toml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return TomlFile(str(path))

    return make


@pytest.mark.parametrize("keys", PLACES, ids=".".join)
def test_a_key_is_found_in_the_line_where_it_begins(keys, file_of):
    file = file_of(TEXT)
    assert file.where(keys) == f"{file.path}:{PLACES[keys]}"


def test_a_key_that_is_not_there_is_the_files(file_of):
    file = file_of(TEXT)
    assert [file.where(keys) for keys in (("no",), ("t", "c"), ("a", "b"))] == [file.path] * 3


def test_lines_end_as_in_windows_too(file_of):
    file = file_of(TEXT.replace("\n", "\r\n"))
    assert file.where(("u", "v", "y")) == f"{file.path}:16"


def test_3_000_lines_are_searched_in_less_than_a_second_of_the_processor(file_of):
    file = file_of("[objective]\n" + "".join(f"key{number} = {number}\n" for number in range(3_000)))
    before = time.process_time()
    assert file.where(("objective", "key2999")) == f"{file.path}:3001"
    assert time.process_time() - before < 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a = " + "1" * 5000, "an integer of more than 300 digits"),
        ("a = 0x" + "f" * 300, "an integer of more than 300 digits"),
        ("a = " + "[" * 100_000, "its values are nested more than 500 deep"),
        ("[" + ".".join("a" * 101) + "]\n" + "b." * 50 + "c = 1", ""),
        ("a." * 5_000 + "a = 1", "a key of more than 100 dots"),
        ("x = { " + "a . " * 5_000 + "a = 1 }", "a key of more than 100 dots"),
        (b"a = '\xed\xa0\x80'", "line 1: byte 0xed at offset 5 is not UTF-8"),
        ("a = 'x'\n" + "#" * (1 << 20), "the file is larger than 1 MiB"),
    ],
    ids=["digits", "hexadecimal", "brackets", "few dots", "dots", "dots within", "surrogate", "size"],
)
def test_what_no_settings_file_holds_is_one_line(text, told, file_of):
    if not told:
        file_of(text)
        return
    with pytest.raises(SettingsFileError, match=rf"a\.toml: is not TOML: {told}$"):
        file_of(text)
