"""Links to directories are followed in every kind of input, and what is left out is told with its number."""

import shutil
from pathlib import Path

import pytest

from bertdata.steps.record_source import reads_records
from tests.support.commands import Program
from tests.support.paths import EXTRACTED


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory ``c`` with a folder of its own, one behind a link, and a link that leads back up."""
    for name, words in (("c/en/a", "English words."), ("elsewhere/b", "German words.")):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.with_suffix(".jsonl").write_text(f'{{"text": "{words}"}}\n')
        path.with_suffix(".txt").write_text(f"{words}\n")
    (tmp_path / "c" / "de").symlink_to("../elsewhere")
    (tmp_path / "c" / "en" / "up").symlink_to("..")
    monkeypatch.chdir(tmp_path)
    return tmp_path


CIRCLE = "c: left out 1 (links back to a folder above them): en/up/"


@pytest.mark.parametrize("kind", ["jsonl", "blocks"])
def test_segment_reads_records_behind_a_link(kind: str, bertdata: Program) -> None:
    words = ("--input-kind", kind, "--sentences", "none", "--output", "parts", "--workers", 1)
    outcome = bertdata("segment", "c", *words)
    assert Path("parts/part-00000.txt").read_text() == "German words.\n\nEnglish words.\n\n"
    assert CIRCLE in outcome.err
    other = "2 (other names than the input's): de/b.txt, en/a.txt"
    assert ("c: left out " + other in outcome.err) == (kind == "jsonl")
    assert CIRCLE in bertdata("segment", "c", *words[:-4], "--output", "new", "--dry-run").out


def test_plain_text_and_books_behind_a_link_are_read(bertdata: Program, punkt_tables: None) -> None:
    words = ("--input-kind", "text", "--eval-articles", 0, "--workers", 1)
    outcome = bertdata("segment", "c", *words, "--output", "parts")
    assert "2 articles" in outcome.out or "2 documents" in outcome.out, outcome.out
    assert CIRCLE in outcome.err
    Path("own.txt").write_text("Own words.\n")
    outcome = bertdata("segment", "own.txt", "--books", "c", *words, "--output", "with-books")
    assert "3 articles" in outcome.out or "3 documents" in outcome.out, outcome.out


def test_articles_behind_a_link_are_read(bertdata: Program, punkt_tables: None, folder: Path) -> None:
    (folder / "articles").mkdir()
    (folder / "articles" / "XX").symlink_to(Path(EXTRACTED).resolve())
    assert not reads_records(["articles"], None, {}, [])
    words = ("--eval-articles", 0, "--workers", 1, "--output")
    assert bertdata("segment", EXTRACTED, *words, "one").status == 0
    assert bertdata("segment", "articles", *words, "two").status == 0
    assert (
        Path("one/MD5SUMS").read_text().splitlines()[:2] == Path("two/MD5SUMS").read_text().splitlines()[:2]
    )


def test_train_vocab_learns_from_text_behind_a_link(bertdata: Program) -> None:
    words = ("--input-kind", "blocks", "--size", 100, "--output", "vocab.txt")
    outcome = bertdata("train-vocab", "c", *words)
    assert CIRCLE in outcome.err
    learned = Path("vocab.txt").read_text().split("\n")
    assert {"##m", "##h"} <= set(learned)  # letters of "German" and of "English" alone


@pytest.fixture
def two(folder: Path, training_set: Path) -> Path:
    """A directory of two phases, the first behind a link."""
    (folder / "two").mkdir()
    shutil.copytree(training_set, folder / "two" / "phase2")
    (folder / "two" / "phase1").symlink_to(training_set)
    (folder / "two" / "up").symlink_to(".")
    return folder / "two"


def test_stats_and_report_see_a_phase_behind_a_link(two: Path, bertdata: Program) -> None:
    outcome = bertdata("stats", "two", "--workers", 1)
    assert "two/phase1: " in outcome.out
    assert "two/phase2: " in outcome.out
    assert "two: left out 1 (links back to a folder above them): up/" in outcome.err
    pytest.importorskip("jinja2")
    outcome = bertdata("report", "two", "--output", "page.html")
    assert "phase1" in Path("page.html").read_text()
    assert "two: left out 1 (links back to a folder above them): up/" in outcome.err


def test_verify_sees_a_phase_behind_a_link(two: Path, bertdata: Program) -> None:
    outcome = bertdata("verify-md5", "two")
    files = 2 * len(list((two / "phase2").rglob("*.tfrecord")))
    assert outcome.out.startswith(f"two: {files} files right, sound")


def test_hidden_files_of_other_writers_are_no_data(bertdata: Program, folder: Path) -> None:
    (folder / "table" / "_delta_log").mkdir(parents=True)
    (folder / "table" / "_delta_log" / "0.json").write_text('{"text": "A commit."}\n')
    (folder / "table" / "_temporary").mkdir()
    (folder / "table" / "_temporary" / "part-1.json").write_text('{"text": "Half of it."}\n')
    (folder / "table" / "part-0.json").write_text('{"text": "All of it."}\n')
    (folder / "table" / "_SUCCESS").write_text("")
    outcome = bertdata("segment", "table", "--sentences", "none", "--output", "parts", "--workers", 1)
    assert Path("parts/part-00000.txt").read_text() == "All of it.\n\n"
    left_out = "_SUCCESS, _delta_log/, _temporary/"
    assert f"table: left out 3 (hidden, their names begin with . or _): {left_out}" in outcome.err
