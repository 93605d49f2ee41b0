"""Text held out of training stays out of it, whichever command reads it and however it is named."""

import json
from pathlib import Path

import pytest

from tests.support.commands import Program
from tests.support.paths import GOLDEN

VOCABULARY = GOLDEN / "vocab.txt"


@pytest.fixture(autouse=True)
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bertdata: Program) -> Path:
    """The parts of 40 records, of which a fifth is withheld."""
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({"text": f"Document number {number} tells of {number}."}) for number in range(40)]
    Path("x.jsonl").write_text("\n".join(lines) + "\n")
    words = ("--sentences", "lines", "--eval-share", "20%", "--dedup", "exact", "--workers", 1)
    assert bertdata("segment", "x.jsonl", *words, "--output", "p").status == 0
    assert sorted(path.name for path in Path("p").glob("eval-*")) == ["eval-00000.txt"]
    return tmp_path / "p"


COMMANDS = [
    ["segment", "{}", "--input-kind", "blocks", "--sentences", "lines", "--output", "out"],
    ["segment", "{}", "--input-kind", "text", "--eval-articles", "0", "--output", "out"],
    ["create", "{}", "--vocab", str(VOCABULARY), "--output", "out"],
    ["train-vocab", "{}", "--size", "100", "--output", "vocab.txt"],
    ["train-vocab", "{}", "--input-kind", "blocks", "--size", "100", "--output", "vocab.txt"],
    ["convert", "{}", "out", "--to", "fairseq", "--tokenizer", "tokenizer.json"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[:4]))
def test_a_pattern_that_takes_withheld_text_beside_the_rest_is_refused(
    words: list[str], bertdata: Program
) -> None:
    outcome = bertdata(*(word.format("p/*.txt") for word in words))
    outcome.assert_one_error(
        2,
        "p/eval-00000.txt: is held out of training, expected in a dataset of its own; give p, of which the "
        "parts to train on are taken",
    )


@pytest.mark.parametrize("words", COMMANDS[:-1], ids=lambda words: " ".join(words[:4]))
def test_the_remedy_takes_the_parts_to_train_on(
    words: list[str], bertdata: Program, parts: Path, punkt_tables: None
) -> None:
    given = [word.format("p") for word in words]
    assert bertdata(*given, *(["--workers", "1"] if words[0] != "train-vocab" else [])).status == 0
    withheld = {line.split()[2] for line in (parts / "eval-00000.txt").read_text().splitlines() if line}
    trained = {line.split()[2] for line in (parts / "part-00000.txt").read_text().splitlines() if line}
    assert len(withheld) + len(trained) == 40
    for made in Path("out").glob("part-*"):
        if made.suffix == ".txt" or made.name.endswith("00500"):
            text = made.read_text()
            assert not any(f"number {number} tells" in text for number in withheld)
            assert all(f"number {number} tells" in text for number in trained)


def test_withheld_text_alone_may_be_read(bertdata: Program) -> None:
    words = ("--input-kind", "blocks", "--sentences", "lines", "--workers", 1, "--output")
    assert bertdata("segment", "p/eval-*.txt", *words, "evaluation").status == 0
    assert bertdata("train-vocab", "p/eval-*.txt", "--size", 100, "--output", "vocab.txt").status == 0


def test_a_directory_above_the_parts_is_refused_for_its_withheld_text(bertdata: Program, parts: Path) -> None:
    Path("corpus").mkdir()
    parts.rename("corpus/p")
    outcome = bertdata("segment", "corpus", "--input-kind", "blocks", "--output", "out")
    outcome.assert_one_error(2, "corpus/p/eval-00000.txt: is held out of training", "give corpus/p")
    outcome = bertdata("segment", "corpus", "--input-kind", "jsonl", "--output", "out")
    outcome.assert_one_error(2, "corpus/p/removed.jsonl: is a list of ours, expected text")
