"""Of warnings that differ in file and numbers alone the first is printed, and one line about the others."""

from pathlib import Path

import pytest

from bertdata.cli.common.folded_warnings import FoldedWarnings
from tests.support.commands import SMALL, Program
from tests.support.paths import GOLDEN

UNKNOWN = "b/part-{0}: {1}.5% of {1}00 tokens are [UNK]; iconv b/part-{0}"


def test_one_line_stands_for_all_others_of_a_kind():
    folded = FoldedWarnings()
    given = [UNKNOWN.format(number, number + 3) for number in range(6)]
    assert [folded.is_first(warning) for warning in given] == [True, False, False, False, False, False]
    assert folded.is_first("b/part-1: line 7: the first of 2 NUL bytes")
    assert folded.summarise_others() == [f"b/part-1, b/part-2, b/part-3 and 2 more: as {given[0]}"]
    assert folded.summarise_others() == []


def test_one_other_is_printed_as_it_is():
    folded = FoldedWarnings()
    assert folded.is_first("a: 1 of 2 tokens")
    assert not folded.is_first("b: 2 of 3 tokens")
    assert folded.summarise_others() == ["b: 2 of 3 tokens"]


@pytest.mark.parametrize(
    "shuffle", [(), ("--shuffle", "global", "--num-shards", "2")], ids=["plain", "shuffled"]
)
def test_create_warns_once_for_each_kind(shuffle, capsys, tmp_path):
    for number in range(5):
        Path(tmp_path, f"part-{number}").write_text("Qqq ∀∀ ∃∃ ∄∄ .\n" * (number + 3) + "\nOne more .\n")
    words = ["create", f"{tmp_path}/part-*", "--output", tmp_path / "out", "--vocab", GOLDEN / "vocab.txt"]
    outcome = Program(capsys)(*words, *SMALL, *shuffle)
    assert outcome.status == 0
    first, others = [line for line in outcome.err.splitlines() if "warning" in line]
    assert f"{tmp_path}/part-4: " in first
    assert others.count(f"{tmp_path}/part-") == 4
    assert " and 1 more: as " in others


def test_the_drop_in_warns_once_for_each_kind(capsys, tmp_path):
    for number in range(4):
        Path(tmp_path, f"part-{number}").write_bytes(b"One sentence \0 here .\nTwo .\n\nThree .\nFour .\n")
    words = ["create-pretraining-data", f"--input_file={tmp_path}/part-*", f"--output_file={tmp_path}/out"]
    outcome = Program(capsys)(*words, f"--vocab_file={GOLDEN / 'vocab.txt'}")
    assert outcome.status == 0
    assert sum("NUL bytes" in line for line in outcome.err.splitlines()) == 2
