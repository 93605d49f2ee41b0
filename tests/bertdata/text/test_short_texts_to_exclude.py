"""Texts of an evaluation set that are too short to look for are counted: nothing is left out for them."""

import json
from pathlib import Path

import pytest

from beam_pipelines import prepare
from bertdata import segment
from tests.support.commands import Program

LONG = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
THAI = "\u0e01 \u0e02 \u0e04 \u0e07"
QUESTION = "What is the lake that is deep"
TEXTS = [f"Here {LONG} there.", f"Again {THAI} stands here.", f"{QUESTION}?", "Another document of its own."]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Documents, and an evaluation set of three texts, of which each is in one of them."""
    documents, excluded = tmp_path / "documents.jsonl", tmp_path / "dev.jsonl"
    documents.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    excluded.write_text("".join(json.dumps({"text": text}) + "\n" for text in (LONG, THAI, QUESTION, "")))
    return documents, excluded


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize(("words", "short", "left"), [(13, 2, 3), (7, 1, 2), (4, 0, 1)])
def test_the_line_the_manifest_and_a_warning_count_them(
    words: int, short: int, left: int, engine: str, files, bertdata: Program, tmp_path: Path
) -> None:
    documents, excluded = files
    flags = ("--exclude", excluded, "--exclude-ngram", words, "--sentences", "none", "--engine", engine)
    made = bertdata("segment", documents, "--output", tmp_path / "out", *flags)
    assert made.status == 0, made.err
    totals = json.loads((tmp_path / "out" / "manifest.json").read_text())["totals"]
    kept = [text for text in (tmp_path / "out" / "part-00000.txt").read_text().split("\n\n") if text.strip()]
    assert (totals["unprotected"], totals["excluded"], len(kept)) == (short, 4 - left, left)
    assert (f", texts too short to exclude: {short};" in made.out) == (short > 0)
    assert (f"{short} texts of the sets to exclude have fewer words" in made.err) == (short > 0)


def test_without_a_set_to_exclude_nothing_is_said(files, tmp_path: Path) -> None:
    counts = segment([files[0]], tmp_path / "out", sentences="none")
    assert counts.unprotected is None
    assert "unprotected" not in (tmp_path / "out" / "manifest.json").read_text()


def test_beam_counts_the_same(files, small_vocabulary_file: Path, bertdata: Program, tmp_path: Path) -> None:
    documents, excluded = files
    common = ["--exclude", excluded, "--sentences", "none"]
    assert bertdata("segment", documents, "--output", tmp_path / "parts", *common).status == 0
    flags = ["--input", documents, "--input-kind", "jsonl", "--output", tmp_path / "out", *common]
    flags += ["--text", tmp_path / "text", "--vocab", small_vocabulary_file, "--max-seq-length=64"]
    words = [*flags, "--max-predictions-per-seq=5", "--dupe-factor=1"]
    assert prepare.main([str(word) for word in words]) == 0
    beside = [(tmp_path / name / "manifest.json").read_bytes() for name in ("parts", "text")]
    assert beside[0] == beside[1]
