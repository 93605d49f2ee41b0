"""Names, words and ids of files reach a terminal as text that it cannot obey."""

import io
import json
import shutil
import sys

import pytest

from bertdata.cli.main import main
from bertdata.io.terminal import dump_printable_json, escape_unprintable, say, say_text
from tests.support.commands import SMALL

RED = "\x1b[31m"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, été, 日本, 👩", "plain, été, 日本, 👩"),
        (f"a{RED}b", r"a\x1b[31mb"),
        ("a\x9b31mb", r"a\x9b31mb"),
        ("a\nb\r\tc", r"a\nb\r\tc"),
        ("a\u2028b\x85c", r"a\u2028b\x85c"),
        ("abc\u202etxt.exe", r"abc\u202etxt.exe"),
        ("a\ud800b", r"a\ud800b"),
        ("a\x00\x7f", r"a\x00\x7f"),
        ("می\u200cخواهم", "می\u200cخواهم"),
    ],
)
def test_what_is_not_printable_is_escaped(text: str, shown: str) -> None:
    assert escape_unprintable(text) == shown


def test_lines_of_a_text_stay_lines() -> None:
    file = io.StringIO()
    say_text(f"one\n  two {RED}\n", to=file)
    say("three\nfour", "five", to=file)
    assert file.getvalue() == "one\n  two \\x1b[31m\nthree\\nfour\nfive\n"


def test_a_terminal_of_few_characters_shows_escapes() -> None:
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    say("été", to=file)
    file.seek(0)
    assert file.read() == "\\xe9t\\xe9\n"


@pytest.fixture
def odd_part(tmp_path):
    """A part whose name turns the terminal red and forges a line."""
    part = tmp_path / f"part{RED}\nresults: sound"
    part.write_text("One sentence of words.\nAnother sentence of words.\n\nA second document.\nIts end.\n")
    return part


def check_clean(outcome, lines: int | None = None) -> None:
    for text in (outcome.out, outcome.err):
        assert RED not in text
        assert not any(line.startswith("results: sound") for line in text.splitlines())
    if lines is not None:
        assert len((outcome.out + outcome.err).splitlines()) == lines


def test_an_odd_name_neither_colours_nor_forges(bertdata, odd_part, small_vocabulary_file, tmp_path):
    output = tmp_path / "out"
    flags = ["--output", output, "--vocab", small_vocabulary_file, "--recipe=google", *SMALL]
    check_clean(bertdata("create", odd_part, *flags, "--dry-run"))
    made = bertdata("create", odd_part, *flags)
    assert made.status == 0
    check_clean(made)
    shard = next(path for path in output.iterdir() if path.name.startswith("part"))
    check_clean(bertdata("show", shard))
    check_clean(bertdata("stats", output))
    check_clean(bertdata("verify-md5", output))
    shard.write_bytes(shard.read_bytes()[:-1])
    faulty = bertdata("verify-md5", output)
    assert faulty.status == 1
    check_clean(faulty)
    for command in (["stats"], ["md5", "--content"]):
        check_clean(bertdata(*command, shard), lines=1)
    check_clean(bertdata("create", f"{odd_part}no", *flags), lines=1)
    check_clean(bertdata("create", odd_part, f"--{RED}", *flags), lines=1)
    check_clean(bertdata("stats", output, "--json"))


def test_words_of_a_vocabulary_are_shown_escaped(bertdata, small_vocabulary_file, tmp_path):
    words = small_vocabulary_file.read_text().split("\n")
    place = words.index("the")
    words[place] = f"{RED}the"
    odd = tmp_path / "vocab.txt"
    odd.write_text("\n".join(words))
    part = tmp_path / "part"
    part.write_text(f"the the the the {RED}the the the\nthe the the the the\n")
    plain = ["--output", tmp_path / "out", "--vocab", small_vocabulary_file, "--recipe=google", *SMALL]
    assert bertdata("create", part, *plain).status == 0
    shard = shutil.copy(tmp_path / "out" / "part.tfrecord", tmp_path / "alone.tfrecord")
    outcome = bertdata("show", shard, "--vocab", odd)
    assert outcome.status == 0
    assert "\\x1b[31mthe" in outcome.out
    check_clean(outcome)


def test_md5_escapes_on_a_terminal_alone(monkeypatch, capsys, tmp_path):
    """A pipe gets the name as it is, for md5sum -c."""
    (tmp_path / f"a{RED}").write_bytes(b"a")
    assert main(["md5", str(tmp_path / f"a{RED}")]) == 0
    assert RED in capsys.readouterr().out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert main(["md5", str(tmp_path / f"a{RED}")]) == 0
    found = capsys.readouterr().out
    assert RED not in found
    assert "\\x1b[31m" in found


@pytest.mark.parametrize(
    "word", ["dvořák", "so\xadft", "\x1b[2J", "\u2028", '"\\', "\ud800", "\U000e0001", "a\u200db"]
)
def test_json_is_read_as_it_was_whatever_it_holds(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    say(dump_printable_json({word: [word, 0.5]}))
    shown = capsys.readouterr().out
    assert json.loads(shown) == {word: [word, 0.5]}
    assert escape_unprintable(shown.removesuffix("\n")) == shown.removesuffix("\n")
