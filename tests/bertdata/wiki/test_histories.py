"""A dump of histories, with several revisions of a page, is told in one line."""

import json
import re
from pathlib import Path

import pytest

from beam_pipelines.prepare import main as prepare
from tests.support.commands import Program, contents
from tests.support.dump_pages import page
from tests.support.dumps import write_dump
from tests.support.pipelines import SMALL, words


def revised(title: str, first: str, second: str, number: int) -> str:
    """A page of two revisions."""
    old, new = page(title, first, number=number), page(title, second, number=number)
    revision = re.compile(r"<revision>.*</revision>", re.DOTALL)
    found = revision.search(new)
    assert found is not None
    return revision.sub(lambda old: f"{old[0]}\n    {found[0]}", old)


def pages() -> list[str]:
    """One page of one revision, two articles of two, and a redirect."""
    return [
        page("Plain", "It is short.", number=1),
        revised("Lake", "The lake is deep.", "The lake is very deep.", 2),
        revised("Sea", "The sea is wide.", "The sea is very wide.", 3),
        page("Other", "It is long.", number=4),
    ]


@pytest.fixture
def program(capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(capsys)


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("extractor", ["3.1.0", "mlperf"])
def test_one_line_tells_of_several_revisions_and_what_to_take(
    tmp_path: Path, program: Program, extractor: str, engine: str
) -> None:
    dump = write_dump(tmp_path / "dump.xml", *pages())
    place = tmp_path / "made"
    command = ("extract", dump, "--output", place, "--date", "2020-01-01", "--extractor", extractor)
    for _ in range(2):  # the second finds it finished
        made = program(*command, "--engine", engine)
        assert made.status == 0
        (warning,) = [line for line in made.err.splitlines() if "warning" in line]
        assert "2 pages hold several revisions" in warning
        assert "pages-articles" in warning
    # the bytes stay those of the program
    assert "The lake is deep.The lake is very deep." in (place / "AA" / "wiki_00").read_text()
    assert json.loads((place / "manifest.json").read_text())["pages"]["several_revisions"] == 2


def test_a_dump_of_single_revisions_says_nothing(tmp_path: Path, program: Program) -> None:
    dump = write_dump(tmp_path / "dump.xml", pages()[0], pages()[3])
    made = program("extract", dump, "--output", tmp_path / "made", "--date", "2020-01-01")
    assert "warning" not in made.err
    assert "several_revisions" not in (tmp_path / "made" / "manifest.json").read_text()


@pytest.mark.usefixtures("punkt_tables")
def test_beam_tells_it_too_and_writes_the_same_manifest(
    tmp_path: Path, program: Program, small_vocabulary_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = write_dump(tmp_path / "dump.xml", *pages())
    place, output = tmp_path / "made", tmp_path / "beam"
    assert program("extract", dump, "--output", place, "--date", "2020-01-01").status == 0
    flags = ("--input-kind", "dump", "--date", "2020-01-01", "--extractor", "3.1.0", "--eval-articles", "0")
    assert prepare(words([dump], small_vocabulary_file, output, *flags, *SMALL)) == 0
    assert capsys.readouterr().err.count("several revisions") == 1
    assert contents(tmp_path / "beam.text" / "extracted") == contents(place)
