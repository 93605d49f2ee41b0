"""``bertdata extract``: wikiextractor's files, a report of every page, exit statuses."""

from pathlib import Path

import pytest

from tests.support.commands import Program, contents, finish, start
from tests.support.dumps import HOSTILE_MARKUP, TAIL, files, page, write_dump
from tests.support.paths import DUMP, EXTRACTED


@pytest.fixture
def program(capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(capsys)


def test_the_golden_dump_becomes_its_files_and_a_report(program: Program, tmp_path: Path) -> None:
    done = program("extract", DUMP, "--output", tmp_path / "out", "--workers", 1)
    assert done.status == 0
    assert files(tmp_path / "out") == contents(EXTRACTED)
    lines = done.out.splitlines()
    assert "articles written" in lines[0]
    assert "dates frozen at 2020-01-01" in lines[-1]


def test_progress_tells_of_both_stages_and_reaches_the_end(program: Program, tmp_path: Path) -> None:
    lines = program("extract", DUMP, "--output", tmp_path / "out", "--workers", 1).err.splitlines()
    size = DUMP.stat().st_size
    ends = [line for line in lines if line.endswith(f": {size} of {size} bytes")]
    assert [line.split(":")[0] for line in ends] == ["collecting templates", "extracting articles"]
    assert len(lines) <= 20


@pytest.mark.parametrize(
    ("flags", "sentence"), [((), b"In 2001 it is tall."), (("--no-templates",), b"In 2001 it is.")]
)
def test_date_and_templates_are_settings(
    program: Program, tmp_path: Path, flags: tuple[str, ...], sentence: bytes
) -> None:
    template = page("Template:Height", "tall", number=1, namespace=10)
    article = page("Tower", "In {{CURRENTYEAR}} it is {{Height}}.", number=2)
    dump = write_dump(tmp_path / "dump.xml", template, article)
    out = tmp_path / "out"
    assert program("extract", dump, "--output", out, "--date", "2001-02-03", *flags).status == 0
    assert sentence in contents(out)["AA/wiki_00"].splitlines()


def test_pages_skipped_for_a_named_reason_are_no_failure(program: Program, tmp_path: Path) -> None:
    pages = [page("One", "Text.", number=1), page("Two", "#REDIRECT [[One]]", number=2, redirect="One")]
    damaged = page("Three", "Text.", number=3).replace("<ns>", "<nz>")
    dump = write_dump(tmp_path / "dump.xml", *pages, damaged)
    done = program("extract", dump, "--output", tmp_path / "out", "--workers", 1)
    assert done.status == 0
    assert "page 'Three' (id 3): skipped: malformed" in done.out
    assert "3 pages: 1 articles written (0 of them empty), 2 pages skipped" in done.out
    assert "  1 redirect" in done.out


@pytest.mark.parametrize("markup", HOSTILE_MARKUP.values(), ids=HOSTILE_MARKUP)
def test_many_tags_that_are_left_open_are_read_once(tmp_path: Path, markup: str) -> None:
    good = page("Good", "Text.", number=2)
    dump = write_dump(tmp_path / "enwiki-20200101.xml", markup, good)
    done = finish(start("extract", dump, "--output", tmp_path / "out", "--workers", 1), seconds=120)
    assert done.status == 0, done.err
    assert b'<doc id="2"' in b"".join(files(tmp_path / "out").values())


def test_a_dump_at_fault_exits_1_with_one_line(program: Program, tmp_path: Path) -> None:
    dump = tmp_path / "dump.xml"
    whole = write_dump(dump, page("One", "Text.", number=1)).read_text()
    dump.write_text(whole.removesuffix(TAIL))
    done = program("extract", dump, "--output", tmp_path / "out", "--workers", 1)
    assert done.status == 1
    errors = [line for line in done.err.splitlines() if ": error: " in line]
    assert errors == [
        f"bertdata: error: {dump}: cut off: the dump ends without </mediawiki>; download it again"
    ]


def test_pages_are_left_out_by_their_ids(program: Program, tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "dump.xml", *(page(f"Page {n}", "Text.", number=n) for n in (1, 2, 3)))
    ids = [word for number in (3, 1, 7) for word in ("--skip-page", number)]
    done = program("extract", dump, "--output", tmp_path / "out", *ids)
    assert done.status == 0
    assert "  2 left out by --skip-page" in done.out
    assert "page id 7: not in the dump, nothing to leave out" in done.out
    assert files(tmp_path / "out")["AA/wiki_00"].count(b"<doc ") == 1
    planned = program("extract", dump, "--output", tmp_path / "new", *ids, "--dry-run").out
    assert "skipped pages ['1', '3', '7']" in planned


def test_wrong_usage_exits_2(program: Program, tmp_path: Path) -> None:
    out = tmp_path / "out"
    program("extract", DUMP, "--output", out, "--date", "1st of May").assert_one_error(
        2, "'1st of May' is no date"
    )
    program("extract", tmp_path / "no.xml", "--output", out).assert_one_error(2, "no.xml: no such file")
    assert not out.exists()
