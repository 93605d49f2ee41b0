"""Articles that the input has twice, one copy withheld, the other trained on: counted and told."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from beam_pipelines import prepare
from bertdata import segment
from tests.support.commands import Program

ARTICLE = '<doc id="{0}" url="u" title="T{0}">\nT{0}\n\nThe lake number {0} is deep. It is old.\n\n</doc>\n'
DIGESTS = {
    hashlib.md5(f"The lake number {number} is deep.\nIt is old.".encode()).hexdigest() for number in range(3)
}
WORDS = ["the", "lake", "number", "is", "deep", ".", "it", "old", "0", "1", "2"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]


@pytest.fixture
def articles(tmp_path: Path) -> Path:
    """Three articles in wiki_00, and the same three in wiki_01. Beside them v.txt, a vocabulary."""
    folder = tmp_path / "extracted" / "AA"
    folder.mkdir(parents=True)
    for name in ("wiki_00", "wiki_01"):
        (folder / name).write_text("".join(map(ARTICLE.format, range(3))))
    (tmp_path / "v.txt").write_text("\n".join(VOCABULARY) + "\n")
    return folder.parent


def texts(path: Path) -> list[str]:
    return [text.strip() for text in path.read_text().split("\n\n") if text.strip()]


def totals(directory: Path) -> dict:
    return json.loads((directory / "manifest.json").read_text())["totals"]


def test_withheld_articles_that_are_trained_on_are_counted(
    articles: Path, bertdata: Program, tmp_path: Path
) -> None:
    out = tmp_path / "parts"
    made = bertdata("segment", articles, "--output", out, "--eval-articles", 2)
    trained, withheld = texts(out / "part-00000-of-00500"), texts(out / "eval.txt")
    assert (len(trained), len(withheld)) == (4, 2)
    right = sum(text in trained for text in withheld)
    assert right == 2
    assert totals(out)["withheld_in_training"] == right
    assert made.out.endswith(", withheld texts in training: 2\n")
    [warning] = [line for line in made.err.splitlines() if "warning" in line]
    assert "--dedup exact --eval-share" in warning


def test_the_digests_of_the_withheld_texts_are_those_of_eval_md5(
    articles: Path, bertdata, tmp_path: Path
) -> None:
    bertdata("segment", articles, "--output", tmp_path / "parts", "--eval-articles", 2)
    assert set((tmp_path / "parts" / "eval.md5").read_text().split()) <= DIGESTS


def test_texts_of_test_shards_that_training_shards_have_are_counted(
    articles: Path, bertdata: Program, tmp_path: Path
) -> None:
    out = tmp_path / "shards"
    flags = ("--recipe", "nvidia", "--training-shards", 1, "--test-shards", 1, "--test-fraction", 0.5)
    made = bertdata("segment", articles, "--output", out, *flags)
    trained, withheld = (texts(out / f"wikicorpus_en_{kind}_0.txt") for kind in ("training", "test"))
    right = sum(text in trained for text in withheld)
    assert right > 0
    assert totals(out)["withheld_in_training"] == right
    assert f"withheld texts in training: {right}" in made.out


def test_articles_that_stand_once_count_nothing(articles: Path, bertdata: Program, tmp_path: Path) -> None:
    (articles / "AA" / "wiki_01").unlink()
    made = bertdata("segment", articles, "--output", tmp_path / "parts", "--eval-articles", 1)
    assert totals(tmp_path / "parts")["withheld_in_training"] == 0
    assert made.out.endswith(", withheld texts in training: 0\n")
    assert "warning" not in made.err


def test_without_withheld_articles_nothing_is_said(articles: Path, bertdata: Program, tmp_path: Path) -> None:
    made = bertdata("segment", articles, "--output", tmp_path / "parts", "--eval-articles", 0)
    assert "withheld texts" not in made.out + made.err
    assert "withheld_in_training" not in totals(tmp_path / "parts")


def test_a_finished_directory_tells_it_again_and_keeps_its_bytes(
    articles: Path, bertdata, tmp_path: Path
) -> None:
    flags = ("segment", articles, "--output", tmp_path / "parts", "--eval-articles", 2)
    first = bertdata(*flags)
    before = (tmp_path / "parts" / "manifest.json").read_bytes()
    again = bertdata(*flags)
    assert again.out == first.out
    assert "withheld texts in training: 2" in again.err
    assert (tmp_path / "parts" / "manifest.json").read_bytes() == before


def test_a_manifest_of_before_says_nothing_of_it(articles: Path, tmp_path: Path) -> None:
    """Nobody counted, which is another thing than none."""
    segment([articles], tmp_path / "parts", eval_articles=2)
    path = tmp_path / "parts" / "manifest.json"
    path.write_text(path.read_text().replace(',\n  "withheld_in_training": 2', ""))
    assert segment([articles], tmp_path / "parts", eval_articles=2).withheld_in_training is None


def test_every_worker_count_gives_the_same_manifest(articles: Path, tmp_path: Path) -> None:
    made = [
        segment([articles], tmp_path / f"w{n}", eval_articles=2, block_size=0.0003, workers=n) for n in (1, 3)
    ]
    assert made[0] == made[1]
    assert (tmp_path / "w1" / "manifest.json").read_bytes() == (
        tmp_path / "w3" / "manifest.json"
    ).read_bytes()


def test_beam_counts_the_same(articles: Path, bertdata: Program, tmp_path: Path, capsys) -> None:
    bertdata("segment", articles, "--output", tmp_path / "parts", "--eval-articles", 2)
    flags = [
        "--input",
        articles,
        "--input-kind",
        "articles",
        "--output",
        tmp_path / "out",
        "--eval-articles",
        2,
    ]
    flags += ["--vocab", tmp_path / "v.txt", "--max-seq-length", 64, "--text", tmp_path / "text"]
    assert (
        prepare.main([str(flag) for flag in [*flags, "--max-predictions-per-seq", 5, "--recipe", "google"]])
        == 0
    )
    told = capsys.readouterr()
    assert re.search(r"text_withheld_in_training +2\n", told.out)
    assert "withheld texts in training: 2" in told.err
    beside = [(tmp_path / name / "manifest.json").read_bytes() for name in ("parts", "text")]
    assert beside[0] == beside[1]


@pytest.mark.parametrize(
    ("flags", "right"), [(("--eval-articles", 2), 2), (("--dedup", "exact", "--eval-share", "40%"), 0)]
)
def test_the_whole_chain_ends_in_a_report_that_says_it(
    flags: tuple, right: int, articles: Path, bertdata: Program, tmp_path: Path
) -> None:
    parts, shards, page = tmp_path / "parts", tmp_path / "shards", tmp_path / "page.html"
    small = ("--recipe", "google", "--max-seq-length", 64, "--max-predictions-per-seq", 5, "--dupe-factor", 2)
    assert bertdata("segment", articles, "--output", parts, *flags).status == 0
    assert bertdata("create", parts, "--output", shards, "--vocab", tmp_path / "v.txt", *small).status == 0
    assert bertdata("report", shards, "--output", page).status == 0
    assert f"withheld texts in training: {right}<" in page.read_text()
