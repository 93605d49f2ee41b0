"""Pages that show ``<doc``, extracted without escapes: text where it can be told, else a helpful error."""

from pathlib import Path

import pytest

from tests.support.commands import Program
from tests.support.dump_pages import page
from tests.support.dumps import write_dump

SHORT = '&lt;doc id="99"&gt;'
WHOLE = '&lt;doc id="99" url="u" title="Inner"&gt;'
"""Wikitext that shows a first line of an article: a short one, and one as the extractors write it."""

pytestmark = pytest.mark.usefixtures("punkt_tables")


@pytest.fixture
def program(capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(capsys)


def extract(program: Program, place: Path, shown: str, *flags: str) -> Path:
    """The articles of a page that shows this line, between two others."""
    text = f"Before it.\n{shown}\nNext line.\nBehind it."
    pages = [
        page("First", "One text.", number=1),
        page("Frames", text, number=7),
        page("Last", "End.", number=9),
    ]
    dump = write_dump(place / "dump.xml", *pages)
    words = ("extract", dump, "--output", place / "extracted", "--extractor", "2.75", "--date", "2020-01-01")
    assert program(*words, *flags).status == 0
    return place / "extracted"


def test_mlperfs_stage_takes_a_shown_frame_as_the_original_does(program: Program, tmp_path: Path) -> None:
    articles = extract(program, tmp_path, SHORT)
    assert '\n<doc id="99">\n' in (articles / "AA" / "wiki_00").read_text()
    made = program("segment", articles, "--output", tmp_path / "text", "--eval-articles", "0")
    assert made.status == 0, made.err
    assert " 3 articles" in made.out
    # MLPerf's stage 1: a line that contains <doc becomes an empty line, and the next line is dropped
    expected = "\nOne text.\n\nBefore it.\n\nBehind it.\n\nEnd.\n\n\n"
    assert (tmp_path / "text" / "part-00000-of-00500").read_text() == expected


def test_nvidias_stage_takes_a_shown_frame_as_the_original_does(program: Program, tmp_path: Path) -> None:
    articles = extract(program, tmp_path, SHORT)
    flags = ("--recipe", "nvidia", "--training-shards", "1", "--test-shards", "1")
    made = program("segment", articles, "--output", tmp_path / "text", *flags)
    assert made.status == 0, made.err
    texts = "".join(path.read_text() for path in (tmp_path / "text").glob("wikicorpus_*"))
    assert "Before it.\nNext line.\nBehind it.\n\n" in texts


def test_a_record_keeps_a_shown_frame(program: Program, tmp_path: Path) -> None:
    articles = extract(program, tmp_path, SHORT)
    made = program("segment", articles, "--output", tmp_path / "text", "--sentences", "lines")
    assert made.status == 0, made.err
    text = (tmp_path / "text" / "part-00000.txt").read_text()
    assert 'Before it.\n<doc id="99">\nNext line.\nBehind it.\n\n' in text


@pytest.mark.parametrize("recipe", ["mlperf", "nvidia"])
def test_a_whole_frame_that_is_shown_ends_the_run_and_names_the_page_to_skip(
    program: Program, tmp_path: Path, recipe: str
) -> None:
    articles = extract(program, tmp_path, WHOLE)
    flags = {
        "mlperf": ("--eval-articles", "0"),
        "nvidia": ("--recipe", "nvidia", "--training-shards", "1", "--test-shards", "1"),
    }[recipe]
    segment = ("segment", articles, "--output", tmp_path / "text", *flags)
    program(*segment).assert_one_error(1, "wiki_00: line 7", "on line 11", "--skip-page 7;")
    (tmp_path / "again").mkdir()
    articles = extract(program, tmp_path / "again", WHOLE, "--skip-page", "7")
    assert program("segment", articles, "--output", tmp_path / "text", *flags).status == 0
