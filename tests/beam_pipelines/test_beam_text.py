"""From plain text, alone or beside articles or a dump, to shards by one Beam command: the same bytes."""

import re
from pathlib import Path

import pytest

from beam_pipelines.prepare import main
from tests.support.commands import contents
from tests.support.paths import DUMP, GOLDEN
from tests.support.pipelines import NVIDIA, SMALL, commands, made_datasets, words, write_articles

MLPERF = ("--eval-articles", "2", "--block-size", "0.003")

pytestmark = pytest.mark.usefixtures("punkt_tables")


@pytest.fixture
def books(tmp_path: Path) -> Path:
    """The documents of a golden part, a file each, in paragraphs of three lines."""
    documents = (GOLDEN / "corpus" / "part-00000-of-00003").read_text().strip().split("\n\n")
    place = tmp_path / "books"
    place.mkdir()
    for number, document in enumerate(documents):
        text = re.sub(r"((?:.*\n){3})", r"\1\n", document)
        (place / f"book{number}.txt").write_text(f"\ufeff{text}\n")
    return place


def made(
    kind: str, source: Path, vocabulary: Path, output: Path, *flags: str
) -> tuple[dict[str, bytes], ...]:
    """The text files and the datasets' that a pipeline leaves."""
    arguments = words([source], vocabulary, output, "--input-kind", kind, *flags, *SMALL)
    assert main(arguments) == 0
    return contents(output.with_name(f"{output.name}.text")), made_datasets(output)


@pytest.mark.parametrize("segment", [MLPERF, NVIDIA], ids=["mlperf", "nvidia"])
def test_text_equals_the_commands_in_a_row(
    books: Path, published_vocabulary: Path, tmp_path: Path, segment: tuple[str, ...]
) -> None:
    row = ("--input-kind", "text", *segment)
    expected = commands(books, published_vocabulary, tmp_path / "row", row, SMALL)
    assert len(expected[1]) > 4
    assert made("text", books, published_vocabulary, tmp_path / "beam", *segment) == expected


@pytest.mark.parametrize(
    "segment",
    [pytest.param(MLPERF, id="mlperf", marks=pytest.mark.thorough), pytest.param(NVIDIA, id="nvidia")],
)
def test_books_and_articles_equal_the_commands_in_a_row(
    books: Path, published_vocabulary: Path, tmp_path: Path, segment: tuple[str, ...]
) -> None:
    articles = write_articles(tmp_path / "articles", 12)
    both = ("--books", str(books), *segment)
    expected = commands(articles, published_vocabulary, tmp_path / "row", both, SMALL)
    assert b'"kind": "text"' in expected[0]["manifest.json"]
    assert made("articles", articles, published_vocabulary, tmp_path / "beam", *both) == expected


@pytest.mark.thorough
def test_books_and_a_dump_equal_the_commands_in_a_row(
    books: Path, published_vocabulary: Path, tmp_path: Path
) -> None:
    both = ("--books", str(books), *NVIDIA)
    expected = commands(DUMP, published_vocabulary, tmp_path / "row", both, SMALL)
    assert made("dump", DUMP, published_vocabulary, tmp_path / "beam", *both) == expected


def test_a_book_at_fault_ends_the_run_before_a_dump_is_extracted(
    books: Path, published_vocabulary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (books / "book1.txt").write_bytes(b"\x1f\x8b\x08" + bytes(20))
    places = words([DUMP], published_vocabulary, tmp_path / "beam", "--books", str(books))
    assert main([*places, "--input-kind", "dump", *SMALL]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "book1.txt: looks like gzip data" in line
    assert not list(tmp_path.glob("beam*"))


def test_books_beside_parts_are_refused(
    books: Path, published_vocabulary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    part = GOLDEN / "corpus" / "part-00000-of-00003"
    places = words([part], published_vocabulary, tmp_path / "beam", "--books", str(books))
    assert main(places) == 2
    assert (
        "--books goes with --input-kind articles or text or dump, not with parts" in capsys.readouterr().err
    )
