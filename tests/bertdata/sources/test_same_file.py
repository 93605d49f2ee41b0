"""A file that is named by two spellings is found as one, by every command that takes sources."""

from pathlib import Path

import pytest

from bertdata.errors import SettingsError
from bertdata.sources.find import find_files
from tests.support.commands import Program
from tests.support.paths import GOLDEN

LINE = '{"text": "One sentence of a document."}\n'
VOCABULARY = GOLDEN / "vocab.txt"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "x.jsonl").write_text(LINE)
    (tmp_path / "r" / "x.txt").write_text("One sentence.\n")
    (tmp_path / "link.jsonl").symlink_to("r/x.jsonl")
    (tmp_path / "link.txt").symlink_to("r/x.txt")
    (tmp_path / "linked").symlink_to("r")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "sources",
    [
        ["r/x.jsonl", "./r/x.jsonl"],
        ["r/x.jsonl", "{here}/r/x.jsonl"],
        ["r/x.jsonl", "r/../r/x.jsonl"],
        ["r/x.jsonl", "file://{here}/r/x.jsonl"],
        ["r/x.jsonl", "link.jsonl"],
        ["r/x.jsonl", "linked/*.jsonl"],
        ["r", "./r"],
        ["r", "linked"],
        ["r", "r/x.jsonl"],
    ],
)
def test_two_spellings_of_a_source_are_refused(folder: Path, sources: list[str], bertdata: Program) -> None:
    given = [source.format(here=folder) for source in sources]
    with pytest.raises(SettingsError, match=r"jsonl: named twice.*its records would be written twice"):
        find_files(given, "jsonl")
    outcome = bertdata("segment", *given, "--input-kind", "jsonl", "--output", "parts")
    outcome.assert_one_error(2, "jsonl: named twice", "name it once")
    assert not (folder / "parts").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["create", "--vocab", VOCABULARY, "--output", "out"],
        ["train-vocab", "--size", 100, "--output", "v.txt"],
        ["segment", "--input-kind", "text", "--output", "out"],
        ["segment", "--input-kind", "blocks", "--output", "out"],
        ["convert", "--to", "fairseq", "--tokenizer", "t.json"],
    ],
    ids=lambda words: " ".join(map(str, words[:3])),
)
def test_two_spellings_of_a_text_are_refused_everywhere(words: list[object], bertdata: Program) -> None:
    given = ["r/x.txt", "link.txt"] if words[0] != "convert" else ["{r/x,link}.txt"]
    if words[0] == "convert":  # one word names the text: a pattern
        Path("both").mkdir()
        for name in ("a", "b"):
            Path("both", f"{name}.txt").symlink_to("../r/x.txt")
        given = ["both/*.txt", "out"]
    outcome = bertdata(words[0], *given, *words[1:])
    outcome.assert_one_error(2, ".txt: named twice, also as ", "name it once")


def test_two_spellings_of_a_directory_of_articles_are_refused(folder: Path, bertdata: Program) -> None:
    (folder / "r" / "wiki_00").write_text('<doc id="1" url="" title="A">\nA\n\nOne.\n</doc>\n')
    outcome = bertdata("segment", "r", "./r", "--eval-articles", 1, "--output", "parts")
    outcome.assert_one_error(
        2, "./r/wiki_00: named twice, also as r/wiki_00; its articles would be written twice"
    )


def test_the_same_name_twice_is_one_name() -> None:
    assert find_files(["r/x.jsonl", "r/x.jsonl", "r/*.jsonl"], "jsonl").files == ["r/x.jsonl"]
