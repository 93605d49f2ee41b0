"""Escapes that an extractor writes are taken back once, and no text loses what a page shows."""

import bz2
import html
import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.sources.escapes import unescape_text
from bertdata.text import escaped_articles
from tests.support.commands import Program
from tests.support.dump_pages import page
from tests.support.dumps import write_dump

WIKITEXT = "R&amp;D at AT&T, if 5 &lt; 6. A page shows &amp;amp; too.\n\nNext."
LINES = ["R&D at AT&T, if 5 < 6.", "A page shows &amp; too.", "Next.", "Nothing here."]
"""What a reader of the pages sees."""

OTHER = "Nothing here."
"""The text of another page, so that NVIDIA's training and test shards have an article each."""

ROUTES = {
    "mlperf": ("--eval-articles", "0"),
    "nvidia": ("--recipe", "nvidia", "--training-shards", "1", "--test-shards", "1"),
    "records": ("--sentences", "punkt"),
}

pytestmark = pytest.mark.usefixtures("punkt_tables")


@pytest.fixture
def program(capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(capsys)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    return write_dump(tmp_path / "dump.xml", page("Firm", WIKITEXT, number=1), page("Other", OTHER, number=2))


@pytest.fixture
def articles(dump: Path, program: Program) -> Path:
    """The articles as wikiextractor 3.1.0 writes them, escaped, and their manifest."""
    place = dump.parent / "extracted"
    assert program("extract", dump, "--output", place, "--date", "2020-01-01").status == 0
    assert "R&amp;D at AT&amp;T" in (place / "AA" / "wiki_00").read_text()
    return place


def without_manifest(articles: Path) -> Path:
    place = articles.with_name("unlisted")
    shutil.copytree(articles / "AA", place / "AA")
    return place


def lines(place: Path) -> list[str]:
    """The lines that hold something, of a part, or of NVIDIA's test shard behind its training shard."""
    parts = sorted([*place.glob("part-*"), *place.glob("wikicorpus_*")], reverse=True)
    return [line for part in parts for line in part.read_text().split("\n") if line]


@given(st.text(alphabet="&;<>\"'amplt#x237 gu\n", max_size=60), st.booleans())
def test_unescape_takes_back_what_the_standard_library_escapes(text: str, quote: bool) -> None:
    assert unescape_text(html.escape(text, quote=quote).encode()) == text.encode()


@pytest.mark.parametrize("route", ROUTES)
def test_a_part_of_escaped_articles_holds_what_the_page_shows(
    articles: Path, program: Program, route: str
) -> None:
    flags = ROUTES[route]
    place = articles.with_name("text")
    made = program("segment", articles, "--output", place, *flags)
    assert made.status == 0
    assert "escapes such as &amp; taken back in 1" in made.out
    assert "warning" not in made.err
    assert lines(place) == LINES
    (entry,) = json.loads((place / "manifest.json").read_text())["inputs"]
    assert entry["kind"] == "escaped articles"


@pytest.mark.parametrize("route", ROUTES)
def test_articles_that_were_never_escaped_give_the_same_part(
    dump: Path, articles: Path, program: Program, route: str
) -> None:
    flags = ROUTES[route]
    plain = dump.parent / "plain"
    date = ("--date", "2020-01-01")
    assert program("extract", dump, "--output", plain, "--extractor", "mlperf", *date).status == 0
    assert "R&D at AT&T, if 5 < 6. A page shows &amp; too." in (plain / "AA" / "wiki_00").read_text()
    made = program("segment", plain, "--output", dump.parent / "text", *flags)
    assert "taken back" not in made.out
    assert lines(dump.parent / "text") == LINES
    (entry,) = json.loads((dump.parent / "text" / "manifest.json").read_text())["inputs"]
    assert "kind" not in entry or entry["kind"] == "articles"


@pytest.mark.parametrize("route", ROUTES)
def test_articles_without_a_manifest_are_as_the_flag_says(
    articles: Path, program: Program, route: str
) -> None:
    flags = ROUTES[route]
    unlisted = without_manifest(articles)
    for told, expected in (("yes", LINES), ("no", list(map(escaped, LINES)))):
        place = articles.with_name(told)
        made = program("segment", unlisted, "--output", place, *flags, "--escaped-articles", told)
        assert made.status == 0
        assert "warning" not in made.err
        assert lines(place) == expected


def escaped(line: str) -> str:
    return html.escape(line, quote=False)


@pytest.mark.parametrize("route", ROUTES)
def test_escapes_that_nobody_speaks_of_are_kept_and_told(
    articles: Path, program: Program, route: str
) -> None:
    flags = ROUTES[route]
    unlisted = without_manifest(articles)
    made = program("segment", unlisted, "--output", articles.with_name("text"), *flags)
    assert made.status == 0
    (warning,) = [line for line in made.err.splitlines() if "warning" in line]
    assert "AA/wiki_00: holds &amp;" in warning
    assert "--escaped-articles yes" in warning
    assert lines(articles.with_name("text")) == list(map(escaped, LINES))


def test_the_warning_finds_an_escape_in_a_later_file_and_across_two_reads(
    tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(escaped_articles, "_READ_BYTES", 7)
    place = tmp_path / "articles" / "AA"
    place.mkdir(parents=True)
    frame = '<doc id="{0}" url="u" title="T">\nT\n\n{1}\n\n</doc>\n'
    (place / "wiki_00").write_text(frame.format(1, "No mark of one."))
    (place / "wiki_01").write_text(frame.format(2, "Here &amp; there."))
    made = program("segment", place.parent, "--output", tmp_path / "text", "--eval-articles", "0")
    assert "wiki_01: holds &amp;" in made.err
    (place / "wiki_01").write_text(frame.format(2, "Here &ampere; there."))
    made = program("segment", tmp_path, "--output", tmp_path / "other", "--eval-articles", "0")
    assert "holds &amp;" not in made.err


def test_a_flag_that_the_manifest_contradicts_is_refused(articles: Path, program: Program) -> None:
    words = ("segment", articles, "--output", articles.with_name("text"), "--escaped-articles", "no")
    program(*words).assert_one_error(2, "--escaped-articles no", "is escaped", "leave the flag out")
    assert not articles.with_name("text").exists()
    assert program(*words[:4], "--escaped-articles", "yes", "--eval-articles", "0").status == 0


def test_a_flag_where_there_are_no_articles_is_refused(tmp_path: Path, program: Program) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "Fish &amp; chips."}\n')
    words = ("segment", tmp_path / "a.jsonl", "--output", tmp_path / "text", "--escaped-articles", "yes")
    program(*words).assert_one_error(2, "goes with extracted articles")


def test_other_text_keeps_what_looks_like_an_escape(tmp_path: Path, program: Program) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "Fish &amp; chips."}\n')
    made = program("segment", tmp_path / "a.jsonl", "--output", tmp_path / "text")
    assert made.status == 0
    assert "warning" not in made.err
    assert lines(tmp_path / "text") == ["Fish &amp; chips."]


def test_two_extractions_are_each_read_as_their_manifests_say(
    dump: Path, articles: Path, program: Program
) -> None:
    plain = dump.parent / "plain"
    words = ("extract", dump, "--output", plain, "--extractor", "mlperf", "--date", "2020-01-01")
    assert program(*words).status == 0
    flags = ROUTES["records"]
    assert program("segment", articles, plain, "--output", dump.parent / "text", *flags).status == 0
    assert lines(dump.parent / "text") == LINES * 2


def test_articles_compressed_after_their_extraction_keep_their_manifest(
    articles: Path, program: Program
) -> None:
    plain = articles / "AA" / "wiki_00"
    (articles / "AA" / "wiki_00.bz2").write_bytes(bz2.compress(plain.read_bytes()))
    plain.unlink()
    for route, flags in ROUTES.items():
        made = program("segment", articles, "--output", articles.with_name(route), *flags)
        assert made.status == 0
        assert "warning" not in made.err
        assert lines(articles.with_name(route)) == LINES


def test_a_page_that_shows_a_frame_does_not_become_one(tmp_path: Path, program: Program) -> None:
    shown = '&lt;doc id="99" url="u" title="T">\nInner text.\n&lt;/doc>'
    dump = write_dump(tmp_path / "dump.xml", page("Frames", f"Before.\n{shown}\nBehind.", number=1))
    words = ("extract", dump, "--output", tmp_path / "extracted", "--date", "2020-01-01")
    assert program(*words).status == 0
    made = program("segment", tmp_path / "extracted", "--output", tmp_path / "text", "--sentences", "lines")
    assert made.status == 0
    assert lines(tmp_path / "text") == [
        "Before.",
        '<doc id="99" url="u" title="T">',
        "Inner text.",
        "</doc>",
        "Behind.",
    ]


def test_create_and_train_vocab_read_what_the_page_shows(
    articles: Path, program: Program, small_vocabulary_file: Path
) -> None:
    shards = articles.with_name("shards")
    small = ("--max-seq-length", "64", "--max-predictions-per-seq", "10", "--dupe-factor", "1")
    file = articles / "AA" / "wiki_00"
    made = program("create", file, "--output", shards, "--vocab", small_vocabulary_file, *small)
    assert made.status == 0, made.err
    assert lines(articles.with_name("shards.text")) == LINES
    vocabulary = articles.with_name("vocab.txt")
    words = ("train-vocab", file, "--output", vocabulary, "--size", "100", "--no-lower-case")
    assert program(*words).status == 0
    tokens = vocabulary.read_text().split("\n")
    assert {"<", "&"} <= set(tokens)
    unlisted = without_manifest(articles)
    made = program("train-vocab", unlisted / "AA" / "wiki_00", "--output", vocabulary, "--size", "100")
    assert "holds &amp;" in made.err


def test_a_file_of_settings_tells_it_too(articles: Path, program: Program, tmp_path: Path) -> None:
    settings = tmp_path / "dataset.toml"
    settings.write_text('[text]\nescaped_articles = "yes"\neval_articles = 0\n')
    words = ("segment", without_manifest(articles), "--output", tmp_path / "text", "--config", settings)
    assert program(*words).status == 0
    assert lines(tmp_path / "text") == LINES
    settings.write_text('[text]\nescaped_articles = "perhaps"\n')
    program(*words).assert_one_error(2, "dataset.toml:2", "expected one of yes, no")
