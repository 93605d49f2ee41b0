"""The day of published text is found by trying days."""

import re
from datetime import date
from hashlib import md5
from pathlib import Path

import pytest

from bertdata.cli.main import main
from bertdata.errors import InputError, SettingsError
from bertdata.steps.extract import extract
from bertdata.steps.find_date import find_date
from bertdata.steps.segment import segment
from tests.support.dumps import page, write_dump

DAY = date(2020, 3, 5)
PAGES = [
    page("Tower", "The tower is 30 metres high. It stood in {{CURRENTYEAR}} too. It is old.", number=1),
    page("Week", "Today is the {{CURRENTDAY}}th of month {{CURRENTMONTH}}. It rains a lot here.", number=2),
    page("Well", "The well is deep. Nobody knows how deep it is.", number=3),
]


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    return write_dump(tmp_path / "enwiki-20200101-pages-articles.xml", *PAGES)


def write_table(path: Path, *rows: tuple[str, bytes | None]) -> str:
    """A table of these files; None: only a size of 1 is published."""
    lines = ["label\tbytes\tmd5\tpaths"]
    for name, data in rows:
        lines.append(
            f"{name}\t{1 if data is None else len(data)}\t{md5(data).hexdigest() if data else '-'}\t{name}"
        )
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def first_file(dump: Path, directory: Path, day: date = DAY) -> bytes:
    extract(dump, directory, extractor="mlperf", date=day)
    return (directory / "AA" / "wiki_00").read_bytes()


@pytest.mark.parametrize("engine", ["native", "python"])
def test_the_day_of_the_first_extracted_file_is_found(dump: Path, tmp_path: Path, engine: str) -> None:
    published = first_file(dump, tmp_path / "theirs")
    table = write_table(tmp_path / "table.tsv", ("text/AA/wiki_00", published))
    found = find_date(dump, table=table, engine=engine)
    assert found.days == [DAY]
    assert (found.first, found.last) == (date(2020, 1, 1), date(2023, 1, 1))
    assert found.titles == ["Tower", "Week"]
    assert find_date(dump, table=table, until="2020-03-04", engine=engine).days == []


def test_the_day_of_the_first_text_part_is_found(dump: Path, tmp_path: Path) -> None:
    first_file(dump, tmp_path / "theirs")
    segment([str(tmp_path / "theirs")], tmp_path / "results", recipe="mlperf", eval_articles=0)
    part = (tmp_path / "results" / "part-00000-of-00500").read_bytes()
    rows = ("text/ZZ/wiki_99", None), ("results/part-00000-of-00500", part)
    found = find_date(
        dump, table=write_table(tmp_path / "table.tsv", *rows), date="2020-02-20", until="2020-03-20"
    )
    assert found.days == [DAY]
    assert found.bytes == found.published_bytes == len(part)


def test_a_published_size_alone_tells_the_days_of_that_size(tmp_path: Path) -> None:
    text = "It {{#ifeq:{{CURRENTMONTH}}|02|rains in this month|shines}} here."
    dump = write_dump(tmp_path / "d-20200130.xml", page("Weather", text, number=1))
    published = first_file(dump, tmp_path / "theirs", date(2020, 2, 9))
    path = tmp_path / "table.tsv"
    path.write_text(
        f"label\tbytes\tmd5\tpaths\nfirst\t{len(published)}\t-\ttext/AA/wiki_00\n", encoding="utf-8"
    )
    found = find_date(dump, table=str(path), until="2020-03-02")
    assert (found.days[0], found.days[-1], len(found.days)) == (date(2020, 2, 1), date(2020, 2, 29), 29)
    assert "has the published size on 2020-02-01 to 2020-02-29 (of 33 days" in found.lines()[0]


def test_text_that_names_no_day_is_made_once_and_fits_every_day(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "dump-20200101.xml", PAGES[2])
    table = write_table(tmp_path / "table.tsv", ("text/AA/wiki_00", first_file(dump, tmp_path / "theirs")))
    told = []
    found = find_date(dump, table=table, date=date(2020, 1, 1), progress=told.append)
    assert "on every day" in found.lines()[0]
    assert [now.total for now in told if now.stage == "trying days"] == [1, 1]
    other = write_table(tmp_path / "other.tsv", ("text/AA/wiki_00", b"other text"))
    (line,) = find_date(dump, table=other).lines()
    assert re.search("another md5 on every day: no page up to its end names a day; .* are 10$", line)


def test_templates_that_name_the_day_count_where_they_are_expanded(tmp_path: Path) -> None:
    template = page("Template:Now", "{{CURRENTDAY}}", number=9, namespace=10)
    dump = write_dump(
        tmp_path / "d-20200101.xml", template, page("Tower", "It is the {{Now}}th here.", number=1)
    )
    extract(dump, tmp_path / "theirs", extractor="mlperf", date=DAY, templates=True)
    table = write_table(
        tmp_path / "t.tsv", ("text/AA/wiki_00", (tmp_path / "theirs/AA/wiki_00").read_bytes())
    )
    found = find_date(dump, table=table, templates=True, until="2020-02-29")
    assert found.days == [date(2020, 1, 5), date(2020, 2, 5)]


def test_a_table_that_cannot_tell_is_an_error(dump: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="has no row for AA/wiki_00 nor for results/part-00000-of-00500"):
        find_date(dump, table=write_table(tmp_path / "t.tsv", ("vocab.txt", b"x")))
    with pytest.raises(SettingsError, match="names no extracted file"):
        find_date(dump, table=write_table(tmp_path / "t.tsv", ("results/part-00000-of-00500", b"x")))
    (tmp_path / "t.tsv").write_text("one\ttwo\n1\t2\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"t.tsv: is no table, expected columns label, bytes, md5 and paths"):
        find_date(dump, table=str(tmp_path / "t.tsv"))


def test_another_file_under_the_published_dumps_name_is_refused_unread(tmp_path: Path) -> None:
    name = "enwiki-20200101-pages-articles-multistream.xml"
    with pytest.raises(InputError, match="expected 75163254305 as the table publishes them"):
        find_date(write_dump(tmp_path / name, *PAGES), table="mlperf-v1.0")


def test_days_in_the_wrong_order_are_an_error(dump: Path, tmp_path: Path) -> None:
    table = write_table(tmp_path / "t.tsv", ("text/AA/wiki_00", b"x"))
    with pytest.raises(SettingsError, match="until is 2019-01-01, expected a day from 2020-01-01 on"):
        find_date(dump, table=table, until="2019-01-01")


def test_the_command_prints_the_day(dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = write_table(tmp_path / "t.tsv", ("text/AA/wiki_00", first_file(dump, tmp_path / "theirs")))
    words = ["extract", str(dump), "--find-date", "--table", table]
    assert main([*words, "--until", "2020-04-01"]) == 0
    assert capsys.readouterr().out == (
        "text/AA/wiki_00: has the published md5 on 2020-03-05 (of 92 days from 2020-01-01 to 2020-04-01; "
        "2 pages up to its end may depend on the day)\n"
    )
    assert main([*words, "--until", "2020-02-01"]) == 1
    assert "has another md5 on each of 32 days" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--find-date"], "--find-date needs --table"),
        (
            ["--find-date", "--table", "mlperf-v1.0", "--output", "out"],
            "--output does not go with --find-date",
        ),
        (["--output", "out", "--until", "2020-01-01"], "--until goes with --find-date"),
        ([], "required: --output"),
    ],
)
def test_flags_that_do_not_go_together_are_refused(
    dump: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    with pytest.raises(SystemExit):
        main(["extract", str(dump), *words])
    assert message in capsys.readouterr().err
