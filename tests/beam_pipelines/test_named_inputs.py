"""The pipeline takes the files that patterns name by the same rules as the command line."""

from pathlib import Path

import pytest

from beam_pipelines import prepare
from tests.support.paths import EXTRACTED, GOLDEN

VOCABULARY = str(GOLDEN / "vocab.txt")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("in/a.txt", "in/x/b.txt", "in/x/y/c.txt", "in/.hidden.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("One sentence.\n")
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "x.jsonl").write_text('{"text": "One sentence."}\n')
    (tmp_path / "articles").symlink_to(Path(EXTRACTED).resolve())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_stars_go_through_all_levels(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--input", "in/**/*.txt", "--output", "out", "--vocab", VOCABULARY, "--recipe", "google"]
    assert prepare.main([*words, "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert [name for name in ("a.txt", "b.txt", "c.txt", "hidden") if f"{name}.tfrecord" in shown] == [
        "a.txt",
        "b.txt",
        "c.txt",
    ]


@pytest.mark.parametrize(
    ("inputs", "kind"),
    [
        (["in/a.txt", "./in/a.txt"], "parts"),
        (["in/a.txt,in/../in/a.txt"], "parts"),
        (["r", "./r"], "jsonl"),
        (["in/a.txt", "in/x/../a.txt"], "text"),
        (["articles", "./articles"], "articles"),
    ],
)
def test_one_file_by_two_spellings_is_refused(
    inputs: list[str], kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--input", *inputs, "--input-kind", kind, "--output", "out", "--vocab", VOCABULARY]
    assert prepare.main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "named twice, also as " in line
    assert not Path("out").exists()
