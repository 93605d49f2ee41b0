"""From plain text, alone or beside articles or a dump, to shards by one Beam command: the same bytes."""

import bz2
import re
from pathlib import Path

import pytest

from beam_pipelines.prepare import main
from bertdata.cli.main import main as command_line
from tests.support.commands import contents
from tests.support.dump_pages import page
from tests.support.dumps import write_dump
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


def test_text_of_an_earlier_run_is_made_again_where_a_book_has_changed(
    books: Path, published_vocabulary: Path, tmp_path: Path
) -> None:
    before = made("text", books, published_vocabulary, tmp_path / "beam", *NVIDIA)
    book = books / "book1.txt"
    book.write_text(book.read_text().replace("the", "thy"))
    again = made("text", books, published_vocabulary, tmp_path / "beam", *NVIDIA)
    assert again[0] != before[0]
    assert again == made("text", books, published_vocabulary, tmp_path / "fresh", *NVIDIA)


def test_finished_text_loses_what_a_killed_run_left_and_gets_its_md5sums_back(
    books: Path, published_vocabulary: Path, tmp_path: Path
) -> None:
    expected = made("text", books, published_vocabulary, tmp_path / "beam", *NVIDIA)
    text = tmp_path / "beam.text"
    (text / "unfinished").mkdir()  # as if killed while it removed this
    (text / "unfinished" / "part-00000.json").write_text("{}")
    (text / "MD5SUMS").unlink()
    assert made("text", books, published_vocabulary, tmp_path / "beam", *NVIDIA) == expected
    assert not (text / "unfinished").exists()


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


def escaped_articles(place: Path) -> Path:
    """Articles as wikiextractor 3.1.0 writes them, with escapes, some of their files compressed."""
    text = "R&amp;D at AT&T, if 5 &lt; 6. A page shows &amp;amp; too.\n\nNext one."
    pages = [page(f"T{n}", f"{text} Number {n} & more.", number=n) for n in range(1, 13)]
    dump = write_dump(place / "dump.xml", *pages)
    given = [
        "extract",
        str(dump),
        "--output",
        str(place / "articles"),
        "--date",
        "2020-01-01",
        "--workers",
        "1",
    ]
    assert command_line(given) == 0
    return place / "articles"


@pytest.mark.parametrize(
    "segment",
    [("--eval-articles", "2"), NVIDIA, ("--sentences", "lines")],
    ids=["mlperf", "nvidia", "records"],
)
def test_escapes_are_taken_back_as_by_the_commands_in_a_row(
    published_vocabulary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], segment: tuple[str, ...]
) -> None:
    articles = escaped_articles(tmp_path)
    expected = commands(articles, published_vocabulary, tmp_path / "row", segment, SMALL)
    texts = b"".join(data for name, data in expected[0].items() if not name.endswith(".json"))
    assert b"R&D at AT&T, if 5 < 6." in texts
    assert b"A page shows &amp; too." in texts
    assert b'"kind": "escaped articles"' in expected[0]["manifest.json"]
    assert made("articles", articles, published_vocabulary, tmp_path / "beam", *segment) == expected
    assert re.search(r"text_unescaped +1\n", capsys.readouterr().out)


def test_articles_without_a_manifest_are_as_the_flag_says_on_beam_too(
    published_vocabulary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    articles = escaped_articles(tmp_path)
    packed = articles / "AA" / "wiki_00.bz2"
    packed.write_bytes(bz2.compress((articles / "AA" / "wiki_00").read_bytes()))
    for name in ("AA/wiki_00", "manifest.json", "MD5SUMS"):
        (articles / name).unlink()
    flags = ("--eval-articles", "2", "--escaped-articles", "yes")
    expected = commands(articles, published_vocabulary, tmp_path / "row", flags, SMALL)
    assert b"R&D at AT&T" in expected[0]["part-00000-of-00500"]
    capsys.readouterr()
    assert made("articles", articles, published_vocabulary, tmp_path / "beam", *flags) == expected
    assert "holds &amp;" not in capsys.readouterr().err
    made("articles", articles, published_vocabulary, tmp_path / "other", *flags[:2])
    assert capsys.readouterr().err.count("wiki_00.bz2: holds &amp;") == 1
