"""Plain-text files as input: each one document, alone or beside articles, for both text recipes."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from bertdata.dataset.chain import verify_chain
from bertdata.errors import DatasetError, InputError, MissingInputError, SettingsError, TooFewArticles
from bertdata.text import nvidia_writing
from bertdata.text.input_kinds import ARTICLES, TEXT
from bertdata.text.mlperf import make_sentences
from bertdata.text.nvidia import make_articles
from bertdata.text.nvidia_format import join_formatted_articles
from bertdata.text.plain_text import join_book_lines
from bertdata.text.segment import segment_files
from bertdata.text.settings import SegmentSettings
from bertdata.text.text_inputs import TextInputs, find_inputs
from tests.support.commands import contents
from tests.support.fake_splitters import load_period_splitter, read_kit, split_at_periods
from tests.support.original_sharding import format_books, shards_of

MLPERF = SegmentSettings(eval_articles=0)
NVIDIA = SegmentSettings(recipe="nvidia", training_shards=2, test_shards=1, prefix="books_wiki_en_corpus")
split = load_period_splitter().segment_lines

BOOKS = {
    "b.txt": "Chapter 1\n\n  It was dark. Rain fell.\nNobody came.\n",
    "a.txt": "\ufeffOnce more.\r\n\r\nThe end.\r\n",
    "deeper/c.txt": "A third book. It has two sentences.",
}
ARTICLE = '<doc id="{0}" url="x" title="T">\nT\n\nOne {0}. Two {0}.\nThree {0}.\n\n</doc>\n'


@pytest.fixture
def books(tmp_path: Path) -> Path:
    place = tmp_path / "books"
    for name, text in BOOKS.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(text.encode())
    (place / ".hidden.txt").write_text("Hidden.")
    (place / "README").write_text("No book.")
    return place


@pytest.fixture
def extracted(tmp_path: Path) -> Path:
    place = tmp_path / "extracted"
    (place / "AA").mkdir(parents=True)
    for number in range(2):
        text = "".join(ARTICLE.format(10 * number + n) for n in range(3))
        (place / "AA" / f"wiki_{number:02d}").write_text(text)
    return place


def run(
    out: Path, settings: SegmentSettings, files: list[str], kinds: list[str], **how: Any
) -> dict[str, bytes]:
    """The files that a run leaves."""
    segment_files(files, str(out), settings, load_period_splitter, kinds=kinds, **how)
    return contents(out)


def as_articles(place: Path, files: list[Path]) -> list[str]:
    """Files of one article each, which hold the lines of the books, stripped as NVIDIA strips a book's."""
    place.mkdir()
    made = []
    for number, path in enumerate(files):
        lines = [line.strip() for line in path.read_bytes().decode("utf-8-sig").split("\n")]
        text = "\n".join(['<doc id="1" url="x" title="T">', "T", "", *lines, "</doc>", ""])
        (place / f"wiki_{number:02d}").write_text(text)
        made.append(str(place / f"wiki_{number:02d}"))
    return made


def test_a_book_becomes_the_line_that_nvidias_formatting_writes() -> None:
    book = "\ufeff  Chapter 1 \r\n\r\n \tIt was dark.\u3000\nNight\x0cfell, a \rreturn stays\n\n".encode()
    line = "Chapter 1 It was dark. Night\x0cfell, a \rreturn stays "
    assert join_book_lines(book, "book.txt") == line
    assert join_formatted_articles([line]) == line.encode() + b"\n\n"


def test_a_book_is_one_article_of_the_recipe_nvidia() -> None:
    text = make_articles(BOOKS["b.txt"].encode(), "b.txt", split, TEXT)
    assert text.articles == [b"Chapter 1 It was dark.\nRain fell.\nNobody came.\n\n"]
    assert (text.sentences, text.empty, text.outside) == ([3], 0, 0)


def test_each_line_of_a_document_is_a_paragraph_of_the_recipe_mlperf() -> None:
    text = make_sentences(BOOKS["b.txt"].encode(), "b.txt", 0, 1, 0, split, TEXT)
    assert text.training == b"\nChapter 1\nIt was dark.\nRain fell.\nNobody came.\n\n\n\n"
    assert (text.articles, text.sentences) == (1, 4)


def test_what_looks_like_mark_up_in_a_book_stays() -> None:
    line = b"He [sic] said: <br> a [[word]] and alt= too.\n"
    assert make_sentences(line, "b.txt", 0, 1, 0, split, TEXT).training == b"\n" + line + b"\n\n\n"
    assert make_articles(line, "b.txt", split, TEXT).articles == [line + b"\n"]


def test_directories_give_their_text_files_in_order_and_books_come_before_articles(
    books: Path, extracted: Path
) -> None:
    found = [str(books / name) for name in ("a.txt", "b.txt", "deeper/c.txt")]
    articles = [str(extracted / "AA" / name) for name in ("wiki_00", "wiki_01")]
    notes = (
        f"{books}: left out 1 (hidden, their names begin with . or _): .hidden.txt",
        f"{books}: left out 1 (other names than the input's): README",
    )
    assert find_inputs([str(books)], TEXT) == TextInputs(files=found, kinds=[TEXT] * 3, notes=notes)
    kinds = [TEXT] * 3 + [ARTICLES] * 2
    both = find_inputs([str(extracted)], ARTICLES, [str(books)])
    assert both == TextInputs(files=found + articles, kinds=kinds, notes=notes)


def test_files_that_cannot_be_found_or_are_named_twice_are_errors(books: Path, extracted: Path) -> None:
    with pytest.raises(MissingInputError, match=r"extracted: no text files found, expected \*\.txt"):
        find_inputs([str(extracted)], TEXT)
    with pytest.raises(SettingsError, match=r"a\.txt: named twice"):
        find_inputs([str(books / "a.txt")], TEXT, [str(books)])
    with pytest.raises(SettingsError, match="input_kind is 'jpeg', expected one of articles, text"):
        find_inputs([str(books)], "jpeg")


@pytest.mark.parametrize("settings", [MLPERF, NVIDIA], ids=["mlperf", "nvidia"])
def test_books_and_articles_give_the_text_of_articles_in_that_order(
    books: Path, extracted: Path, tmp_path: Path, settings: SegmentSettings
) -> None:
    inputs = find_inputs([str(extracted)], ARTICLES, [str(books)])
    files, kinds = inputs.files, inputs.kinds
    mixed = run(tmp_path / "mixed", settings, files, kinds)
    same = [*as_articles(tmp_path / "same", [Path(path) for path in files[:3]]), *files[3:]]
    plain = run(tmp_path / "plain", settings, same, [])
    assert {name: plain[name] for name in plain if name.endswith((".txt", "-00500"))} == {
        name: mixed[name] for name in mixed if name.endswith((".txt", "-00500"))
    }


def test_the_shards_of_books_and_articles_are_these(books: Path, extracted: Path, tmp_path: Path) -> None:
    inputs = find_inputs([str(extracted)], ARTICLES, [str(books)])
    files, kinds = inputs.files, inputs.kinds
    made = run(tmp_path / "out", NVIDIA, files, kinds)
    first = {name: data.split(b"\n\n")[0] for name, data in made.items() if name.endswith(".txt")}
    assert first == {  # nine documents, seven of three sentences: the last of them goes first
        "books_wiki_en_corpus_training_0.txt": b"One 12.\nTwo 12.\nThree 12.",
        "books_wiki_en_corpus_training_1.txt": b"One 11.\nTwo 11.\nThree 11.",
        "books_wiki_en_corpus_test_0.txt": b"One 10.\nTwo 10.\nThree 10.",
    }
    assert b"Once more.\nThe end.\n\n" in b"".join(made.values())


def test_books_before_the_kits_articles_give_the_shards_of_the_original(kit: Path, tmp_path: Path) -> None:
    place = tmp_path / "books"
    place.mkdir()
    for number in range(40):
        lines = [f"  Book {number}, line {n}. It goes on.\r" for n in range(1 + number * number % 23)]
        (place / f"{number:02d}.txt").write_text("\n\n".join(lines), newline="")
    books = format_books([path.read_bytes() for path in sorted(place.iterdir())])
    articles = read_kit(kit, "nvidia/formatted.txt").decode()
    expected = shards_of([books, articles], split_at_periods, 4, 2, 0.1)
    settings = SegmentSettings(recipe="nvidia", training_shards=4, test_shards=2, prefix="shard")
    inputs = find_inputs([str(kit / "extracted")], ARTICLES, [str(place)])
    files, kinds = inputs.files, inputs.kinds
    made = run(tmp_path / "out", settings, files, kinds)
    names = [f"shard_training_{n}.txt" for n in range(4)] + [f"shard_test_{n}.txt" for n in range(2)]
    assert [made[name] for name in names] == expected


def test_documents_are_withheld_and_never_the_rest_behind_them(books: Path, tmp_path: Path) -> None:
    inputs = find_inputs([str(books)], TEXT)
    files, kinds = inputs.files, inputs.kinds
    made = run(tmp_path / "out", SegmentSettings(eval_articles=3), files, kinds)
    assert made["eval.txt"] == (
        b"\nOnce more.\nThe end.\n\n"
        b"\nChapter 1\nIt was dark.\nRain fell.\nNobody came.\n\n"
        b"\nA third book.\nIt has two sentences.\n\n"
    )
    digest = hashlib.md5(b"\nA third book.\nIt has two sentences.").hexdigest()
    assert made["eval.md5"].decode().splitlines()[2] == digest


def test_more_withheld_documents_than_files_are_refused_with_a_number_that_works(
    books: Path, tmp_path: Path
) -> None:
    inputs = find_inputs([str(books)], TEXT)
    files, kinds = inputs.files, inputs.kinds
    with pytest.raises(TooFewArticles, match=r"--eval-articles 1 works here \(3 articles in all\)"):
        run(tmp_path / "out", SegmentSettings(), files, kinds)


@pytest.mark.parametrize("settings", [MLPERF, NVIDIA], ids=["mlperf", "nvidia"])
def test_the_manifest_names_the_kind_of_every_input_but_articles(
    books: Path, extracted: Path, tmp_path: Path, settings: SegmentSettings
) -> None:
    inputs = find_inputs([str(extracted)], ARTICLES, [str(books)])
    files, kinds = inputs.files, inputs.kinds
    made = run(tmp_path / "out", settings, files, kinds)
    inputs = json.loads(made["manifest.json"])["inputs"]
    assert [(one["name"], one.get("kind")) for one in inputs] == [
        ("a.txt", "text"),
        ("b.txt", "text"),
        ("deeper/c.txt", "text"),
        ("wiki_00", None),
        ("wiki_01", None),
    ]
    assert run(tmp_path / "out", settings, files, kinds) == made
    moved = books.rename(tmp_path / "elsewhere")
    inputs = find_inputs([str(extracted)], ARTICLES, [str(moved)])
    files, kinds = inputs.files, inputs.kinds
    assert run(tmp_path / "again", settings, files, kinds, workers=2) == made


def test_a_directory_made_of_files_of_another_kind_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "wiki_00"
    file.write_text("Text.")
    settings = SegmentSettings(eval_articles=0)
    run(tmp_path / "out", settings, [str(file)], [TEXT])
    with pytest.raises(DatasetError, match="was made with other settings: input kinds '1 text', now None"):
        run(tmp_path / "out", settings, [str(file)], [])


def test_the_chain_of_plain_text_ends_there(books: Path, tmp_path: Path) -> None:
    inputs = find_inputs([str(books)], TEXT)
    files, kinds = inputs.files, inputs.kinds
    run(tmp_path / "out", MLPERF, files, kinds)
    report = verify_chain(str(tmp_path / "out"))
    assert not [finding for finding in report.findings if finding.is_fault]
    assert report.chain[-1] == "  the chain ends here: the parts were made of plain text"


class _PulledOut(Exception):
    """Stands for a crash."""


@pytest.mark.parametrize("settings", [MLPERF, NVIDIA], ids=["mlperf", "nvidia"])
@pytest.mark.parametrize("die_after", [1, 3, 4])
def test_a_run_of_both_kinds_after_a_crash_ends_with_the_same_bytes(
    books: Path,
    extracted: Path,
    tmp_path: Path,
    settings: SegmentSettings,
    die_after: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nvidia_writing, "GROUP_FILES", 2)
    inputs = find_inputs([str(extracted)], ARTICLES, [str(books)])
    files, kinds = inputs.files, inputs.kinds
    whole = run(tmp_path / "whole", settings, files, kinds)
    left = die_after

    def die(size: int) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise _PulledOut

    with pytest.raises(_PulledOut):
        run(tmp_path / "out", settings, files, kinds, progress=die)
    assert run(tmp_path / "out", settings, files, kinds) == whole


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "book.txt: is empty, expected plain text in UTF-8, one document a file; remove it"),
        (b"\xef\xbb\xbf \n\xe3\x80\x80\r\n", "book.txt: is empty"),
        (b"caf\xe9 au lait\n", "book.txt: line 1: byte 0xe9"),
        (b"good\n\x89PNG\r\n", "book.txt: line 2: byte 0x89"),
        (b"\x7fELF\x02\x01\x01" + bytes(30), r"book.txt: looks like binary data \(it holds NUL\)"),
        (b"\x1f\x8b\x08" + bytes(30), "book.txt: looks like gzip data, expected plain text"),
        (b"BZh91AY&SY" + bytes(30), "book.txt: looks like bzip2 data"),
        (b'{"text": "A book."}\n{"text": "Another."}\n', "book.txt: looks like JSON, one object a line"),
        (ARTICLE.format(1).encode(), "book.txt: looks like extracted articles"),
    ],
)
@pytest.mark.parametrize("settings", [MLPERF, NVIDIA], ids=["mlperf", "nvidia"])
def test_a_file_that_is_no_text_is_an_error_of_one_line(
    tmp_path: Path, data: bytes, message: str, settings: SegmentSettings
) -> None:
    file = tmp_path / "book.txt"
    file.write_bytes(data)
    with pytest.raises(InputError, match=message) as error:
        run(tmp_path / "out", settings, [str(file)], [TEXT])
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out").exists()


def test_a_dry_run_refuses_a_book_that_is_no_text(bertdata: Any, books: Path, tmp_path: Path) -> None:
    (books / "z.txt").write_bytes(b"\x1f\x8b\x08" + bytes(30))
    for words in (["--input-kind", "text", books], ["--books", books, books / "a.txt"]):
        outcome = bertdata("segment", *words, "--output", tmp_path / "out", "--dry-run")
        assert outcome.status in {1, 2}
        assert len(outcome.err.splitlines()) == 1
    cut = tmp_path / "long.txt"
    cut.write_bytes(
        b"." * ((1 << 16) - 1) + "é and more".encode() * 9
    )  # a character over the edge of the head
    outcome = bertdata("segment", cut, "--input-kind=text", "--output", tmp_path / "out", "--dry-run")
    assert (outcome.status, outcome.err) == (0, "")
    assert "input kinds 1 text" in outcome.out


@pytest.mark.usefixtures("punkt_tables")
def test_the_command_takes_books_alone_and_beside_articles(
    bertdata: Any, books: Path, extracted: Path, tmp_path: Path
) -> None:
    shards = ("--recipe=nvidia", "--training-shards=1", "--test-shards=1", "--workers=1")
    alone = bertdata("segment", books, "--input-kind=text", "--output", tmp_path / "alone", *shards)
    assert alone.status == 0
    assert "3 files, 3 articles, 0 without text" in alone.out
    both = bertdata("segment", extracted, "--books", books, "--output", tmp_path / "both", *shards)
    assert both.status == 0
    assert "5 files, 9 articles" in both.out
    single = [word for name in ("a.txt", "b.txt", "deeper/c.txt") for word in ("--books", books / name)]
    again = bertdata("segment", extracted, *single, "--output", tmp_path / "again", *shards)
    assert again.status == 0
    assert contents(tmp_path / "again") == contents(tmp_path / "both")
