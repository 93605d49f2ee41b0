"""A directory of binarised lines is made by the protocol of all directories: one run, run again if killed."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bertdata.build.binarised_part import BinarisedPart
from bertdata.examples.mlm.settings import MlmSettings
from bertdata.shards.fairseq.lines import LinesWriter
from bertdata.tokens.load import find_tokenizer_file, vocabulary_of
from tests.soak.kills import stamp
from tests.support.commands import contents
from tests.support.lock_holder import holder

np = pytest.importorskip("numpy")

DICTIONARY = "the 1\nlamp 1\nwas 1\nlit 1\nkeeper 1\nslept 1\ngulls 1\ncried 1\n"

KILLED = """
import os, signal, sys
import bertdata
def tell(step):
    os.kill(os.getpid(), getattr(signal, sys.argv[4]))
from bertdata.steps.binarise import binarise
binarise([sys.argv[1]], sys.argv[2], tokenizer=sys.argv[3], workers=1, progress=tell)
"""


@pytest.fixture
def words(tmp_path: Path) -> list[Any]:
    (tmp_path / "dict.txt").write_text(DICTIONARY)
    for number in range(3):
        (tmp_path / f"text{number}.txt").write_text("the lamp was lit\n\nthe keeper slept\n")
    out = tmp_path / "out"
    return ["convert", tmp_path / "text*.txt", out, "--to=fairseq", f"--tokenizer={tmp_path / 'dict.txt'}"]


@pytest.mark.parametrize(
    ("symbols", "starts"),
    [
        # Byte-level BPE and Unigram: a blank begins a word.
        (["\u0120the", "la", "mp", "\u0120was"], [1, 0, 0, 1]),
        (["\u2581the", "la", "mp", "\u2581was"], [1, 0, 0, 1]),
        # No token begins with a blank, so each is a word.
        (["the", "la", "mp", "was"], [1, 1, 1, 1]),
    ],
)
def test_words_start_where_the_symbols_of_a_dictionary_say(
    symbols: list[str], starts: list[int], tmp_path: Path
) -> None:
    (tmp_path / "dict.txt").write_text("".join(f"{symbol} 1\n" for symbol in symbols))
    sink = io.BytesIO()
    writer = LinesWriter(sink=sink, kind="u2")
    writer.write(np.array([4, 5, 6, 2, 2, 7, 2]), np.array([4, 5, 7]))
    (tmp_path / "train.bin").write_bytes(sink.getvalue())
    (tmp_path / "train.idx").write_bytes(writer.index())
    tokenizer = find_tokenizer_file(str(tmp_path / "dict.txt"))
    documents = BinarisedPart(str(tmp_path / "train.bin"), tokenizer).load(MlmSettings()).documents
    assert [vocabulary_of(tokenizer).words[number] for number in documents.ids] == symbols
    assert documents.word_starts is not None
    assert list(documents.word_starts) == starts


def test_a_run_that_was_killed_while_it_wrote_is_run_again(
    bertdata: Any, words: list[Any], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert bertdata(*words, "--workers=1").status == 0
    expected = contents(out)
    for name in ("SIGKILL", "SIGTERM"):
        killed = tmp_path / name
        command = [sys.executable, "-c", KILLED, tmp_path / "text0.txt", killed, tmp_path / "dict.txt", name]
        assert subprocess.run(command, capture_output=True).returncode < 0
        assert (killed / "unfinished/plan.json").exists()
        again = [words[0], tmp_path / "text0.txt", killed, *words[3:], "--workers=1"]
        assert bertdata(*again).status == 0
        assert sorted(contents(killed)) == sorted(expected)
        assert bertdata("verify-md5", killed).status == 0


def test_of_two_runs_at_once_one_is_refused(bertdata: Any, words: list[Any], tmp_path: Path) -> None:
    with holder(tmp_path / "out/unfinished") as other:
        outcome = bertdata(*words, "--workers=1")
        outcome.assert_one_error(2, f"another run (process {other.pid} on", "is writing here")
    assert bertdata(*words, "--workers=1").status == 0


def test_a_finished_directory_stays_as_it_is(bertdata: Any, words: list[Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert bertdata(*words, "--workers=1").status == 0
    before = {path.name: stamp(path) for path in out.iterdir()}
    outcome = bertdata(*words, "--workers=1")
    assert (outcome.status, outcome.out) == (0, f"{out}: 9 lines, 30 tokens\n")
    assert {path.name: stamp(path) for path in out.iterdir()} == before


def test_a_damaged_file_is_made_again(bertdata: Any, words: list[Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert bertdata(*words, "--workers=1").status == 0
    before = contents(out)
    (out / "train.bin").write_bytes(b"\0" * len(before["train.bin"]))
    assert bertdata("verify-md5", out).status == 1
    assert bertdata(*words, "--workers=1").status == 0
    assert contents(out) == before


def test_a_directory_of_another_tokeniser_or_text_is_refused(
    bertdata: Any, words: list[Any], tmp_path: Path
) -> None:
    assert bertdata(*words, "--workers=1").status == 0
    before = contents(tmp_path / "out")
    (tmp_path / "dict.txt").write_text(DICTIONARY + "tower 1\n")
    bertdata(*words, "--workers=1").assert_one_error(2, "was made with other settings: vocabulary")
    (tmp_path / "dict.txt").write_text(DICTIONARY)
    (tmp_path / "text3.txt").write_text("gulls cried\n")
    bertdata(*words, "--workers=1").assert_one_error(2, "other inputs (text3.txt)")
    assert contents(tmp_path / "out") == before


def test_text_that_was_changed_is_binarised_again(bertdata: Any, words: list[Any], tmp_path: Path) -> None:
    assert bertdata(*words, "--workers=1").status == 0
    (tmp_path / "text1.txt").write_text("gulls cried\n")
    assert bertdata(*words, "--workers=1").status == 0
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert [one["lines"] for one in manifest["inputs"]] == [3, 1, 3]
    assert manifest["totals"] == {"lines": 7, "tokens": 23}
    outcome = bertdata("verify-md5", "--chain", tmp_path / "out")
    assert outcome.status == 0
    assert "binarised lines of 3 files of text" in outcome.out
