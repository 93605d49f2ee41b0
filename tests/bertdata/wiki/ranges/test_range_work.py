"""A dump extracted range by range: the files and the report of the local step."""

import bz2
import tempfile
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.errors import InputError
from bertdata.io import storage
from bertdata.io.process_pool import ProcessPool
from bertdata.wiki.articles.directory import ArticlesDirectory
from bertdata.wiki.articles.files import count_articles_per_file
from bertdata.wiki.articles.report import ExtractReport
from bertdata.wiki.dump.revisions import choose_frozen_day
from bertdata.wiki.dump.site import parse_head
from bertdata.wiki.extract import extract_dump
from bertdata.wiki.extractor import ExtractorSettings
from bertdata.wiki.open_extractor import check_engine, forget_extractors
from bertdata.wiki.page_rules import PageRules
from bertdata.wiki.ranges import work as range_work
from bertdata.wiki.ranges.fold import check_digests, check_sequence, distribute_articles, join_reports
from bertdata.wiki.ranges.ranges import DumpRanges, recognise_dump
from bertdata.wiki.ranges.shared_templates import SharedTemplates, fetch_templates, write_templates
from bertdata.wiki.settings import EXTRACTORS, ExtractorName, ExtractSettings
from bertdata.wiki.template_file import read_definitions
from bertdata.wiki.worker_pool import WorkerPools
from tests.support.commands import contents
from tests.support.dumps import HEAD, TAIL, multistream, page, write_dump
from tests.support.paths import DUMP


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A process for each range would take longer than the ranges."""

    @contextmanager
    def open_here(*_: object) -> Any:
        yield WorkerPools(ProcessPool(1), ProcessPool(1))

    monkeypatch.setattr(range_work, "open_pools", open_here)
    yield
    forget_extractors()


def extract_by_ranges(
    dump: Path, place: Path, settings: ExtractSettings, range_bytes: int
) -> dict[str, bytes]:
    """The files, by the functions that workers call."""
    data = dump.read_bytes()
    ranges = DumpRanges(path=str(dump), bytes=len(data), kind=recognise_dump(data), range_bytes=range_bytes)
    text = bz2.decompress(data) if ranges.kind == "bzip2" else data
    text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    directory = ArticlesDirectory(str(place), str(dump), len(data), settings)
    workers = ExtractorSettings(
        extractor=settings.extractor,
        engine=check_engine(settings.extractor, None),
        site=parse_head(text.partition(b"<page>")[0], str(dump), settings.extractor),
        day=directory.day,
        templates=None,
        max_page_bytes=settings.max_page_bytes,
        rules=PageRules(dump=str(dump), skip_pages=settings.skip_pages),
    )
    spool = place.with_name(f"{place.name}.spool")
    spool.mkdir()

    def collect(number: int, **state: Any) -> range_work.RangeDefinitions:
        path = str(spool / f"{number}.templates") if settings.templates else None
        return range_work.collect_definitions(ranges, number, workers, path, days=True, **state)

    def articles(number: int, **state: Any) -> range_work.RangeArticles:
        return range_work.extract_range(ranges, number, workers, str(spool / f"{number}"), **state)

    first = list(
        check_sequence(str(dump), map(collect, range(len(ranges))), lambda n, s: collect(n, state=s))
    )
    newest = max(found.newest for found in first)
    workers = workers._replace(day=choose_frozen_day(str(dump), directory.day, newest))
    if settings.templates:
        paths = [found.path for found in first if found.path]
        shared = write_templates(paths, lambda md5: str(spool / f"templates-{md5}"))
        workers = workers._replace(templates=fetch_templates(shared))
    second = list(
        check_sequence(str(dump), map(articles, range(len(ranges))), lambda n, s: articles(n, state=s))
    )
    check_digests(
        str(dump), [found.facts.digest for found in first], [found.facts.digest for found in second]
    )
    files = [
        b"".join(Path(piece.path).read_bytes()[piece.start :][: piece.bytes] for piece in pieces)
        for pieces in distribute_articles(second)
    ]
    report = join_reports(found.report for found in second)
    report.template_pages = sum(found.pages for found in first)
    left_out = {number for found in (*first, *second) for number in found.left_out}
    assert workers.day is not None
    report.date = workers.day.isoformat()
    return check_against_step(dump, place, settings, directory, files, report, left_out)


def check_against_step(
    dump: Path,
    place: Path,
    settings: ExtractSettings,
    directory: ArticlesDirectory,
    files: list[bytes],
    report: ExtractReport,
    left_out: set[str],
) -> dict[str, bytes]:
    """The files of the local step, which are these."""
    from bertdata.io.file_check import FileEntry, compute_md5
    from bertdata.wiki.articles.files import make_file_name

    local = place.with_name(f"{place.name}.local")
    extract_dump(dump, local, settings)
    entries = [
        FileEntry(name=make_file_name(number), bytes=len(data), md5=compute_md5(data))
        for number, data in enumerate(files)
    ]
    report.files, report.bytes = len(files), sum(map(len, files))
    directory.finish(report, entries, compute_md5(dump.read_bytes()), left_out)
    expected = contents(local)
    made = contents(place) | {entry.name: data for entry, data in zip(entries, files, strict=True)}
    assert made == expected
    return expected


@pytest.mark.parametrize("extractor", EXTRACTORS)
@pytest.mark.parametrize("form", ["plain", "multistream", "one stream", "bytes behind"])
def test_the_golden_dump_by_ranges_equals_the_step(
    tmp_path: Path, form: str, extractor: ExtractorName
) -> None:
    dump = tmp_path / DUMP.name
    xml = DUMP.read_bytes()
    data = {
        "plain": xml,
        "multistream": multistream(xml, [1000, 20_000, 60_000, 60_001, 110_000]),
        "one stream": bz2.compress(xml, 1),
        "bytes behind": multistream(xml, [20_000, 60_000]) + b"of no stream, in several ranges\n" * 300,
    }[form]
    dump.write_bytes(data)
    settings = ExtractSettings(extractor=extractor, templates=True)
    extract_by_ranges(dump, tmp_path / "ranges", settings, 20_000 if form == "plain" else 3000)


def seams() -> str:
    """Pages whose results depend on the page before: the same id, redirects, pages without a namespace."""
    pages = []
    for n in range(1, 60):
        pages.append(page(f"P{n}", f"Text {n}. " * (n % 7), number=n // 2 * 2, namespace=0))
        pages.append(page(f"No namespace {n}", "Text.", number=1000 + n // 3, namespace=None))
        if n % 4 == 0:
            pages.append(page(f"R{n}", "#REDIRECT [[P1]]", number=2000 + n, namespace=1, redirect="P1"))
    return "".join(pages)


@pytest.mark.parametrize("extractor", EXTRACTORS)
@pytest.mark.parametrize("range_bytes", [700, 1500, 4321])
def test_pages_at_the_seams_depend_on_those_before(
    tmp_path: Path, extractor: ExtractorName, range_bytes: int
) -> None:
    dump = write_dump(tmp_path / "dump-20200101-x.xml", seams())
    settings = ExtractSettings(extractor=extractor, skip_pages=("2004", "9999"))
    files = extract_by_ranges(dump, tmp_path / "ranges", settings, range_bytes)
    assert b"page id 9999: not in the dump" in files["manifest.json"]


@st.composite
def odd_dumps(draw: st.DrawFn) -> str:
    """Pages that depend on those before: equal ids, no namespace, redirects, texts that are not closed."""
    pages = []
    for n in range(draw(st.integers(1, 25))):
        whole = page(
            draw(st.sampled_from(["One", "Template:T", "Module:M", "Talk:One"])) + f" {n % 5}",
            draw(st.sampled_from(["Text.", "{{T 1}} and {{T 2}}.\n\nText.", "", "#REDIRECT [[One]]"])),
            number=draw(st.integers(1, 3)),
            namespace=draw(st.sampled_from([None, 0, 0, 1, 10, 828])),
            redirect=draw(st.sampled_from([None, None, None, "One"])),
        )
        if pages and draw(st.integers(0, 9)) == 0:  # else the head would not end, which is refused
            whole = whole.replace(draw(st.sampled_from(["</text>", "<title>", "  <page>\n"])), "")
        pages.append(whole)
    return "".join([HEAD, *pages, TAIL])


@pytest.mark.parametrize("extractor", EXTRACTORS)
@given(xml=odd_dumps(), range_bytes=st.integers(200, 3000))
def test_ranges_of_odd_pages_equal_one_range(extractor: ExtractorName, xml: str, range_bytes: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        dump = Path(place, "dump.xml")
        dump.write_text(xml)
        divided = joined(dump, extractor, range_bytes)
        assert divided == joined(dump, extractor, len(xml))


def joined(dump: Path, extractor: ExtractorName, range_bytes: int) -> Any:
    """Definitions, articles and report of the dump, by ranges of that size."""
    size = dump.stat().st_size
    ranges = DumpRanges(path=str(dump), bytes=size, kind="xml", range_bytes=range_bytes)
    settings = ExtractorSettings(
        extractor=extractor,
        engine=check_engine(extractor, None),
        site=parse_head(HEAD.encode(), str(dump), extractor),
        day=date(2020, 1, 1),
        templates=None,
        max_page_bytes=1 << 20,
        rules=PageRules(dump=str(dump), skip_pages=("2",)),
    )

    def collect(number: int, **state: Any) -> range_work.RangeDefinitions:
        path = str(dump.with_name(f"{range_bytes}-{number}.templates"))
        return range_work.collect_definitions(ranges, number, settings, path, days=True, **state)

    def articles(number: int, **state: Any) -> range_work.RangeArticles:
        path = str(dump.with_name(f"{range_bytes}-{number}.articles"))
        return range_work.extract_range(ranges, number, settings, path, **state)

    numbers = range(len(ranges))
    first = list(check_sequence(str(dump), map(collect, numbers), lambda n, s: collect(n, state=s)))
    second = list(check_sequence(str(dump), map(articles, numbers), lambda n, s: articles(n, state=s)))
    definitions = [
        definition
        for found in first
        if found.path
        for definition in read_definitions(memoryview(Path(found.path).read_bytes()))
    ]
    texts = b"".join(Path(found.path).read_bytes() for found in second)
    return definitions, texts, join_reports(found.report for found in second)


def test_faults_and_dates_are_those_of_the_step(tmp_path: Path) -> None:
    damaged = page("Damaged", "Text.", number=3).replace("<ns>", "<nz>")
    bad = page("Bad", "Text of it.", number=4).encode().replace(b"of", b"\xff")
    pages = [page(f"P{n}", "One.", number=n, day=f"2019-01-{n:02}") for n in range(5, 25)]
    dump = write_dump(tmp_path / "dump.xml", *pages[:9], damaged, *pages[9:], bad)
    extract_by_ranges(dump, tmp_path / "ranges", ExtractSettings(), 2000)


def test_a_large_article_leaves_an_empty_file_before_it() -> None:
    mebibyte = 1 << 20
    assert list(count_articles_per_file([])) == [0]
    assert list(count_articles_per_file([mebibyte + 1, 5])) == [0, 1, 1]
    assert list(count_articles_per_file([mebibyte - 5, 5, 1])) == [2, 1]


@pytest.mark.parametrize(
    ("tail", "message"),
    [("", "ends without </mediawiki>"), ("<page><title>Half</title>", "ends inside the page 'Half'")],
)
def test_a_dump_that_ends_too_early_is_an_error(tmp_path: Path, tail: str, message: str) -> None:
    pages = [page(f"P{n}", "One.", number=n) for n in range(20)]
    dump = write_dump(tmp_path / "dump-20200101-x.xml", *pages, tail=tail)
    with pytest.raises(InputError, match=message):
        extract_by_ranges(dump, tmp_path / "ranges", ExtractSettings(), 2000)


def test_another_template_file_than_the_first_pass_s_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "templates"
    path.write_bytes(b"other")
    with pytest.raises(InputError, match="the templates were changed since the first pass"):
        fetch_templates(SharedTemplates(path=str(path), md5="0" * 32))


def test_a_remote_template_file_is_fetched_once(tmp_path: Path) -> None:
    with storage.open_output("memory://shared/part") as file:
        file.write(b"BDWIKI2\n" + bytes(16))
    shared = write_templates(["memory://shared/part"], lambda md5: f"memory://shared/templates-{md5}")
    path = Path(fetch_templates(shared))
    assert path.read_bytes() == b"BDWIKI2\n" + bytes(16)
    assert fetch_templates(shared) == str(path)


def test_a_dump_that_changes_between_the_passes_is_an_error() -> None:
    with pytest.raises(InputError, match="dump.xml: was changed while it was being read"):
        check_digests("dump.xml", [1, 2], [1, 3])
