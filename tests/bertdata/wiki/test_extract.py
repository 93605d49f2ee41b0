"""Extraction: wikiextractor's bytes from every kind of dump, with any number of workers, nothing lost."""

import bz2
import gzip
import hashlib
import json
import multiprocessing
import random
from datetime import date
from pathlib import Path

import pytest

from bertdata._native import Engine
from bertdata.errors import (
    BertDataError,
    DatasetError,
    InputError,
    MissingExtraError,
    MissingInputError,
    SettingsError,
    StorageError,
)
from bertdata.io import process_pool, storage
from bertdata.io.directory_protocol import Commit
from bertdata.io.process_pool import ProcessPool
from bertdata.wiki.articles.files import ArticleFiles, make_file_name
from bertdata.wiki.articles.report import ExtractReport
from bertdata.wiki.dump import dump
from bertdata.wiki.dump.bzip2_blocks import END_MAGIC
from bertdata.wiki.extract import extract_dump
from bertdata.wiki.settings import ExtractorName, ExtractSettings, parse_name_date
from bertdata.wiki.wikiextractor import renderer
from tests.support.commands import contents
from tests.support.dumps import HEAD, TAIL, files, multistream, page, wikiextractor_files, write_dump
from tests.support.paths import ROOT

GOLDEN = ROOT / "golden" / "dump"
DAY = date(2020, 1, 1)
ON_DAY = ExtractSettings(date=DAY)
HEIGHT = "{{{1}}} metres{{#if:{{{2|}}}| ({{{2}}})}}<noinclude>The documentation.</noinclude>"
WORDS = "Water runs down the old stone steps and out into the garden below. "


def sample_pages() -> list[str]:
    """Pages of every kind that extraction tells apart."""
    return [
        page("Template:Height", HEIGHT, number=1, namespace=10),
        page("Template:Tall", "#REDIRECT [[Template:Height]]", number=2, namespace=10, redirect="T"),
        page("Tower", "The '''tower''' is {{tall|30|with its mast}} high.\n\n" + WORDS * 40, number=3),
        page("Steeple", "#REDIRECT [[Tower]]", number=4, redirect="Tower"),
        page("Today", "It is {{CURRENTYEAR}}-{{CURRENTMONTH}}-{{CURRENTDAY}}, {{CURRENTTIME}}.", number=5),
        page("Talk:Tower", "Nice tower.", number=6, namespace=1),
        page("Template engine", "A program that fills in forms.", number=7),
        page("Bell & rope", "See [[tower|the tower]] &nbsp; – and ring <b>it</b>.\r\nTwice.", number=8),
        page("Nothing", None, number=9),
        page("Twice", "First.", number=10),
        page("Twice again", "Second.", number=10),
    ]


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    return write_dump(tmp_path / "enwiki-20191231-sample.xml", *sample_pages())


@pytest.fixture(params=[1, 2])
def workers(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def extracted(
    dump: Path, directory: Path, settings: ExtractSettings = ON_DAY, workers: int = 1
) -> dict[str, bytes]:
    """The files that extraction writes; its report's counts must add up."""
    report = extract_dump(dump, directory, settings, workers=workers)
    found = files(directory)
    assert report.pages == report.written + sum(report.skipped.values())
    assert report.files == len(found)
    assert report.bytes == sum(map(len, found.values()))
    assert report.written == sum(data.count(b"<doc ") for data in found.values())
    return found


# The oracle


@pytest.fixture(scope="module")
def kits_dump(kit: Path) -> Path:
    return kit / "dump" / "enwiki-p10-p30302-shortened.xml.bz2"


@pytest.fixture(scope="module")
def kits_articles(kits_dump: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files that wikiextractor makes of the kit's dump."""
    return wikiextractor_files(kits_dump, tmp_path_factory.mktemp("theirs"), "2016-05-01")


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_kits_dump_gives_wikiextractors_bytes(
    kits_dump: Path, kits_articles: dict[str, bytes], tmp_path: Path, count: int
) -> None:
    report = extract_dump(kits_dump, tmp_path / "ours", workers=count)
    assert files(tmp_path / "ours") == kits_articles
    assert (report.pages, report.written, report.empty) == (206, 106, 1)
    assert report.skipped == {"redirect": 99, "namespace 4": 1}
    assert report.date == "2016-05-01"  # its newest revision: its name has none


def test_pages_of_every_kind_give_wikiextractors_bytes(sample: Path, tmp_path: Path, workers: int) -> None:
    expected = wikiextractor_files(sample, tmp_path / "theirs", "2020-01-01")
    ours = extracted(sample, tmp_path / "ours", workers=workers)
    assert ours == expected
    assert b"30 metres(with its mast) high" in ours["AA/wiki_00"]


def test_without_templates_it_gives_wikiextractors_bytes(sample: Path, tmp_path: Path) -> None:
    expected = wikiextractor_files(sample, tmp_path / "theirs", "2020-01-01", "--no-templates")
    ours = extracted(sample, tmp_path / "ours", ExtractSettings(date=DAY, templates=False))
    assert ours == expected
    assert b"metres" not in ours["AA/wiki_00"]


def test_large_articles_start_files_where_wikiextractor_starts_them(tmp_path: Path) -> None:
    sizes = [1_200_000, 10, 600_000, 500_000, 400_000, 700_000]
    pages = [page(f"Page {n}", (WORDS * 20000)[:size], number=n) for n, size in enumerate(sizes, 1)]
    source = write_dump(tmp_path / "dump.xml", *pages)
    ours = extracted(source, tmp_path / "ours", workers=2)
    assert ours == wikiextractor_files(source, tmp_path / "theirs", "2020-01-01")
    assert ours["AA/wiki_00"] == b""


def test_a_dump_without_pages_gives_one_empty_file(tmp_path: Path) -> None:
    source = write_dump(tmp_path / "dump.xml")
    ours = extracted(source, tmp_path / "ours")
    assert ours == wikiextractor_files(source, tmp_path / "theirs", "2020-01-01") == {"AA/wiki_00": b""}


# Containers


@pytest.mark.thorough_after_first
def test_every_container_gives_the_same_bytes(tmp_path: Path, workers: int) -> None:
    pages = [page(f"Page {n}", f"{n} " + WORDS * 200, number=n) for n in range(1, 80)]
    plain = write_dump(tmp_path / "dump.xml", *pages)
    xml = plain.read_bytes()
    at_pages = [place for place in range(len(xml)) if xml.startswith(b"  <page>", place)][::20]
    anywhere = sorted(random.Random(7).sample(range(len(xml)), 12))
    expected = extracted(plain, tmp_path / "plain", workers=workers)
    for name, data in {
        "single.xml.bz2": bz2.compress(xml),
        "small-blocks.xml.bz2": bz2.compress(xml, 1),
        "at-pages.xml.bz2": multistream(xml, at_pages),
        "anywhere.xml.bz2": multistream(xml, anywhere),
        "padded.xml.bz2": bz2.compress(xml) + bytes(100),
        "dump.xml.gz": gzip.compress(xml),
        "crlf.xml": xml.replace(b"\n", b"\r\n"),
        "wrongly-named.xml": bz2.compress(xml),
    }.items():
        (tmp_path / name).write_bytes(data)
        assert extracted(tmp_path / name, tmp_path / f"{name}.out", workers=workers) == expected


# The date


def test_the_date_is_the_one_given(sample: Path, tmp_path: Path) -> None:
    ours = extracted(sample, tmp_path / "ours", ExtractSettings(date=date(2003, 4, 5)))
    assert b"It is 2003-04-05, 00:00:00." in ours["AA/wiki_00"]
    assert ours == wikiextractor_files(sample, tmp_path / "theirs", "2003-04-05")


def test_the_date_is_by_default_that_of_the_dumps_name(sample: Path, tmp_path: Path) -> None:
    assert extract_dump(sample, tmp_path / "ours").date == "2019-12-31"
    assert b"It is 2019-12-31" in (tmp_path / "ours/AA/wiki_00").read_bytes()


@pytest.mark.parametrize("templates", [True, False])
def test_the_date_is_otherwise_that_of_the_newest_revision(tmp_path: Path, templates: bool) -> None:
    days = ["2011-02-03", "2012-03-04", "2010-01-01"]
    pages = [page(f"Page {day}", "{{CURRENTDAY}}", number=n, day=day) for n, day in enumerate(days, 1)]
    source = write_dump(tmp_path / "dump.xml", *pages)
    assert extract_dump(source, tmp_path / "ours", ExtractSettings(templates=templates)).date == "2012-03-04"


def test_a_dump_without_any_date_asks_for_one(tmp_path: Path) -> None:
    source = write_dump(tmp_path / "dump.xml", page("A", "Text.", number=1).replace("<timestamp>", "<time>"))
    with pytest.raises(SettingsError, match="--date"):
        extract_dump(source, tmp_path / "ours")
    assert extract_dump(source, tmp_path / "ours", ON_DAY).written == 1


def test_dates_in_names_are_read() -> None:
    assert parse_name_date("enwiki-20200101-pages-articles-multistream.xml.bz2") == date(2020, 1, 1)
    assert parse_name_date("simplewiki-20191231.xml") == date(2019, 12, 31)
    assert parse_name_date("enwiki-20201399-pages.xml") is None
    assert parse_name_date("enwiki-p10-p30302-shortened.xml.bz2") is None


# Nothing is lost silently


def test_every_page_is_counted_with_its_reason(sample: Path, tmp_path: Path, workers: int) -> None:
    report = extract_dump(sample, tmp_path / "ours", workers=workers)
    assert report.pages == len(sample_pages())
    assert report.skipped == {
        "namespace 10": 2,
        "namespace 1": 1,
        "redirect": 1,
        "title begins like a template's": 1,
        "same id as the article before": 1,
    }
    assert (report.written, report.empty, report.template_pages, report.faults) == (5, 1, 2, [])
    assert "11 pages: 5 articles written (1 of them empty), 6 pages skipped" in report.lines()


def test_a_page_of_invalid_utf8_is_skipped_by_name(tmp_path: Path, workers: int) -> None:
    bad = page("Broken", "caf# au lait", number=2).encode().replace(b"#", b"\xe9")
    report = _report_of_one_bad_page(tmp_path, bad, workers)
    assert report.skipped == {"invalid UTF-8": 1}
    assert report.faults == ["page 'Broken' (id 2): skipped: invalid UTF-8"]


def test_a_page_that_breaks_off_before_the_next_is_skipped_by_name(tmp_path: Path, workers: int) -> None:
    bad = page("Broken", WORDS * 3, number=2)
    report = _report_of_one_bad_page(tmp_path, bad[: bad.index("garden")].encode() + b"\n", workers)
    assert report.skipped == {"cut off": 1}
    assert report.faults == ["page 'Broken' (id 2): skipped: cut off"]


def test_a_page_that_lacks_its_beginning_is_skipped(tmp_path: Path, workers: int) -> None:
    bad = page("Broken", WORDS * 3, number=2)
    report = _report_of_one_bad_page(tmp_path, bad[bad.index("garden") :].encode(), workers)
    assert report.skipped == {"cut off": 1}


@pytest.mark.parametrize(
    "missing", ["<title>Broken</title>", "<id>2</id>\n    <revision>", "<ns>0</ns>", "</text>"]
)
def test_a_malformed_page_is_skipped_by_name(tmp_path: Path, missing: str) -> None:
    bad = page("Broken", "Text.", number=2).replace("<id>1002</id>", "").replace("<id>77</id>", "")
    assert missing in bad
    report = _report_of_one_bad_page(tmp_path, bad.replace(missing, "").encode(), 1)
    assert report.skipped == {"malformed": 1}
    assert len(report.faults) == 1


def test_a_page_beyond_the_limit_is_skipped_by_name(tmp_path: Path, workers: int) -> None:
    bad = page("Broken", WORDS * 60_000, number=2).encode()
    report = _report_of_one_bad_page(tmp_path, bad, workers, max_page_bytes=500_000)
    assert report.skipped == {"too large": 1}
    assert report.faults == ["page 'Broken' (id 2): skipped: too large"]


def test_a_page_that_wikiextractor_fails_on_is_skipped_by_name(tmp_path: Path) -> None:
    # A lone surrogate cannot be written as UTF-8; wikiextractor's own command hangs on it.
    report = _report_of_one_bad_page(tmp_path, page("Broken", "&#xD800;", number=2).encode(), 1)
    assert report.skipped == {"extraction failed": 1}
    assert "Broken" in report.faults[0]
    assert "UnicodeEncodeError" in report.faults[0]


def _report_of_one_bad_page(
    tmp_path: Path, bad: bytes, workers: int, max_page_bytes: int = 1 << 28
) -> ExtractReport:
    """The report on a bad page between two good ones, which must be written."""
    good = [page("First", WORDS, number=1), page("Last", WORDS, number=3)]
    source = write_dump(tmp_path / "dump.xml", good[0], bad, good[1])
    settings = ExtractSettings(date=DAY, max_page_bytes=max_page_bytes)
    report = extract_dump(source, tmp_path / "ours", settings, workers=workers)
    assert files(tmp_path / "ours") == extracted(write_dump(tmp_path / "good.xml", *good), tmp_path / "good")
    assert (report.pages, report.written) == (3, 2)
    return report


def test_a_page_without_text_is_an_empty_article(tmp_path: Path) -> None:
    without = page("Bare", None, number=1).replace('<text bytes="0" />', "")
    source = write_dump(
        tmp_path / "dump.xml", without, page("Void", None, number=2), page("Blank", "", number=3)
    )
    report = extract_dump(source, tmp_path / "ours", ON_DAY)
    assert (report.written, report.empty) == (3, 3)
    assert files(tmp_path / "ours") == wikiextractor_files(source, tmp_path / "theirs", "2020-01-01")


@pytest.mark.thorough
def test_a_page_of_50_mb_gives_wikiextractors_bytes(tmp_path: Path) -> None:
    text = ((WORDS * 12 + "\n\n") * (50_000_000 // 800))[:50_000_000]
    source = write_dump(tmp_path / "dump.xml", page("Long", text, number=1), page("Short", WORDS, number=2))
    assert extracted(source, tmp_path / "ours") == wikiextractor_files(
        source, tmp_path / "theirs", "2020-01-01"
    )


# Bad input that ends the run


def _refused(tmp_path: Path, name: str, data: bytes, match: str, workers: int = 1) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=match) as caught:
        extract_dump(tmp_path / name, tmp_path / "ours", ON_DAY, workers=workers)
    assert str(caught.value).startswith(str(tmp_path / name))
    assert not (tmp_path / "ours").exists()


def test_a_truncated_bz2_is_an_error(sample: Path, tmp_path: Path, workers: int) -> None:
    data = bz2.compress(sample.read_bytes())
    for size in (len(data) // 2, len(data) - 3, 30):
        _refused(tmp_path, "dump.xml.bz2", data[:size], "truncated|damaged", workers)


def test_a_damaged_bz2_is_an_error(sample: Path, tmp_path: Path, workers: int) -> None:
    data = bytearray(bz2.compress(sample.read_bytes()))
    data[len(data) // 2] ^= 4
    _refused(tmp_path, "dump.xml.bz2", bytes(data), "byte 4: .*damaged", workers)


def test_a_wrong_checksum_of_a_stream_is_an_error(sample: Path, tmp_path: Path) -> None:
    one, two = bz2.compress(sample.read_bytes()), bz2.compress(b"something else")
    bits = bin(int.from_bytes(one, "big"))[2:]
    at = bits.rindex(bin(END_MAGIC)[2:]) + 45
    flipped = bits[: at + 5] + str(1 - int(bits[at + 5])) + bits[at + 6 :]
    _refused(tmp_path, "dump.xml.bz2", int(flipped, 2).to_bytes(len(one), "big") + two, "damaged")


def test_a_truncated_gz_is_an_error(sample: Path, tmp_path: Path) -> None:
    _refused(tmp_path, "dump.xml.gz", gzip.compress(sample.read_bytes())[:-20], "gzip")


@pytest.mark.parametrize("stream", [False, True])
def test_a_dump_cut_in_a_page_is_an_error_that_names_the_page(
    sample: Path, tmp_path: Path, stream: bool
) -> None:
    xml = sample.read_bytes()
    cut = xml[: xml.index(b"and ring")]
    _refused(tmp_path, "dump.xml", bz2.compress(cut) if stream else cut, "'Bell &amp; rope' .id 8.")


def test_a_dump_cut_between_pages_is_an_error(sample: Path, tmp_path: Path) -> None:
    xml = sample.read_bytes()
    _refused(tmp_path, "dump.xml", xml[: xml.rindex(b"</page>") + 8], "without </mediawiki>")


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "is empty, expected a MediaWiki dump"),
        (b"Just some text.\n" * 100, "expected a MediaWiki dump"),
        (b"<html><body>404 Not Found</body></html>", "'html'"),
        (b"\x00\x01\x02" * 1000, "expected a MediaWiki dump"),
        (b"PK\x03\x04 and so on", "zip"),
        (b"7z\xbc\xaf\x27\x1c", "7-Zip"),
        (b"BZh9 but no bzip2", "bzip2"),
        ("<mediawiki></mediawiki>".encode("utf-16"), "UTF-16"),
    ],
)
def test_what_is_no_dump_is_an_error(tmp_path: Path, data: bytes, match: str) -> None:
    _refused(tmp_path, "dump.xml", data, match)


def test_an_entity_bomb_is_refused_unread(tmp_path: Path) -> None:
    entities = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
    bomb = f'<?xml version="1.0"?><!DOCTYPE bomb [<!ENTITY a0 "ha">{entities}]>\n'
    text = page("Bomb", "boom", number=1).replace("boom", "&a11;")
    _refused(tmp_path, "dump.xml", (bomb + HEAD + text + TAIL).encode(), "document type")


def test_an_external_entity_is_refused_unread(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("the secret")
    declared = f'<!DOCTYPE x [<!ENTITY file SYSTEM "file://{tmp_path}/secret">]>\n'
    text = page("Spy", "peek", number=1).replace("peek", "&file;")
    _refused(tmp_path, "dump.xml", (declared + HEAD + text + TAIL).encode(), "document type")


def test_entities_in_pages_stay_as_they_are(tmp_path: Path) -> None:
    source = write_dump(tmp_path / "dump.xml", page("Spy", "peek", number=1).replace("peek", "&a11; &file;"))
    assert b"&amp;a11; &amp;file;" in extracted(source, tmp_path / "ours")["AA/wiki_00"]


def test_a_missing_dump_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match="no such file"):
        extract_dump(tmp_path / "dump.xml", tmp_path / "ours")
    (tmp_path / "folder").mkdir()
    with pytest.raises(MissingInputError, match="directory"):
        extract_dump(tmp_path / "folder", tmp_path / "ours")


def test_settings_out_of_range_are_errors(sample: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="workers is 0"):
        extract_dump(sample, tmp_path / "ours", workers=0)
    with pytest.raises(SettingsError, match="max_page_bytes"):
        ExtractSettings(max_page_bytes=0)


def test_without_wikiextractor_the_python_engines_error_says_how_to_install_it(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    renderer.load_wikiextractor.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "wikiextractor", None)
    with pytest.raises(MissingExtraError, match=r"pip install --editable '.\[wiki\]'"):
        extract_dump(sample, tmp_path / "ours", engine="python")
    assert not (tmp_path / "ours").exists()


@pytest.mark.parametrize("extractor", ["3.1.0", "mlperf"])
def test_the_kernels_need_no_wikiextractor(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extractor: ExtractorName
) -> None:
    settings = ExtractSettings(date=DAY, extractor=extractor, templates=True)
    expected = extracted(sample, tmp_path / "with", settings)
    renderer.load_wikiextractor.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "wikiextractor", None)
    assert extracted(sample, tmp_path / "without", settings) == expected


# The output directory


class _PulledOut(Exception):
    """Stands for a crash."""


def test_a_run_after_a_crash_goes_on_and_ends_with_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    pages = [page(f"Page {n}", f"{n} " + WORDS * 500, number=n) for n in range(1, 150)]
    pages[40] = page("Page 40", "#REDIRECT [[Page 1]]", number=41, redirect="Page 1")
    source = write_dump(tmp_path / "dump.xml", *pages)
    expected = extracted(source, tmp_path / "whole", workers=workers)
    assert len(expected) == 5
    write, left = ArticleFiles.write, [100]

    def write_for_a_while(self: ArticleFiles, article: bytes) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise _PulledOut
        write(self, article)

    monkeypatch.setattr(ArticleFiles, "write", write_for_a_while)
    with pytest.raises(_PulledOut):
        extract_dump(source, tmp_path / "ours", ON_DAY, workers=workers)
    assert len(files(tmp_path / "ours")) > 3
    left[0] = 80  # enough for what is missing, too little for all
    assert extracted(source, tmp_path / "ours", workers=workers) == expected
    assert not (tmp_path / "ours" / "unfinished").exists()


def test_a_finished_directory_is_known_by_its_manifest(sample: Path, tmp_path: Path) -> None:
    report = extract_dump(sample, tmp_path / "out", ON_DAY)
    expected = contents(tmp_path / "out")
    first = tmp_path / "out" / "AA" / "wiki_00"
    written = first.stat().st_mtime_ns
    (tmp_path / "out" / "unfinished").mkdir()  # as if killed while it removed this
    assert extract_dump(sample, tmp_path / "out", ON_DAY) == report
    assert contents(tmp_path / "out") == expected
    assert first.stat().st_mtime_ns == written
    assert not (tmp_path / "out" / "unfinished").exists()
    with pytest.raises(
        DatasetError, match="was made with other settings: date '2020-01-01', now '2020-02-02'"
    ):
        extract_dump(sample, tmp_path / "out", ExtractSettings(date=date(2020, 2, 2)))


def test_a_finished_directory_that_lost_a_file_is_made_whole(sample: Path, tmp_path: Path) -> None:
    extract_dump(sample, tmp_path / "out", ON_DAY)
    expected = contents(tmp_path / "out")
    (tmp_path / "out" / "AA" / "wiki_00").unlink()
    extract_dump(sample, tmp_path / "out", ON_DAY)
    assert contents(tmp_path / "out") == expected


def test_lost_md5sums_of_a_finished_directory_are_written_again(sample: Path, tmp_path: Path) -> None:
    extract_dump(sample, tmp_path / "out", ON_DAY)
    expected = contents(tmp_path / "out")
    first = tmp_path / "out" / "AA" / "wiki_00"
    written = first.stat().st_mtime_ns
    for rest in (None, expected["MD5SUMS"][:-5]):
        (tmp_path / "out" / "MD5SUMS").unlink()
        if rest is not None:
            (tmp_path / "out" / "MD5SUMS").write_bytes(rest)
        extract_dump(sample, tmp_path / "out", ON_DAY)
        assert contents(tmp_path / "out") == expected
        assert first.stat().st_mtime_ns == written


@pytest.mark.parametrize("packed", [False, True])
def test_the_manifest_names_the_dump_with_its_md5_and_every_file(
    sample: Path, tmp_path: Path, packed: bool, workers: int
) -> None:
    source = sample
    if packed:
        source = sample.with_suffix(".xml.bz2")
        source.write_bytes(bz2.compress(sample.read_bytes()))
    for templates in (True, False):
        out = tmp_path / f"out-{templates}"
        report = extract_dump(source, out, ExtractSettings(templates=templates), workers=workers)
        manifest = json.loads((out / "manifest.json").read_bytes())
        assert manifest["dump"] == entry(source, source.name)
        assert manifest["date"] == manifest["settings"]["date"] == "2019-12-31"
        assert manifest["settings"]["templates"] is templates
        assert manifest["extractor"] == {"name": "wikiextractor", "version": "3.1.0"}
        assert manifest["files"] == [entry(out / "AA" / "wiki_00", "AA/wiki_00")]
        assert manifest["pages"]["skipped"] == report.skipped
        listed = [
            (manifest["files"][0]["md5"], "AA/wiki_00"),
            (entry(out / "manifest.json", "")["md5"], "manifest.json"),
        ]
        assert (out / "MD5SUMS").read_text() == "".join(f"{md5}  {name}\n" for md5, name in listed)


def entry(path: Path, name: str) -> dict[str, object]:
    data = path.read_bytes()
    return {"name": name, "bytes": len(data), "md5": hashlib.md5(data).hexdigest()}


def test_a_dump_that_changed_after_a_crash_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = [page(f"Page {n}", f"{n} " + WORDS * 500, number=n) for n in range(1, 80)]
    source = write_dump(tmp_path / "dump.xml", *pages)

    def pull_out(stage: str, done: int, total: int) -> None:
        if stage == "articles" and (tmp_path / "out/AA/wiki_00").exists():
            raise _PulledOut

    with pytest.raises(_PulledOut):
        extract_dump(source, tmp_path / "out", ON_DAY, progress=pull_out)
    source.write_bytes(source.read_bytes().replace(b"Page 70", b"Page 07"))
    with pytest.raises(InputError, match="dump.xml: was changed since the earlier run began"):
        extract_dump(source, tmp_path / "out", ON_DAY)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_run_that_ends_just_after_a_note_keeps_every_noted_file(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = [page(f"Page {n}", f"{n} " + WORDS * 500, number=n) for n in range(1, 120)]
    source, out = write_dump(tmp_path / "dump.xml", *pages), tmp_path / "out"
    note, noted = Commit.note, list[str]()

    def note_and_end(commit: Commit, name: str, value: dict[str, object]) -> None:
        note(commit, name, value)
        noted.append(name)
        if len(noted) == count:
            raise _PulledOut

    with monkeypatch.context() as patch:
        patch.setattr(Commit, "note", note_and_end)
        with pytest.raises(_PulledOut):
            extract_dump(source, out, ON_DAY)
    assert noted == [make_file_name(number) for number in range(count)]
    kept = [(out / name).stat().st_ino for name in noted]
    assert extracted(source, out) == extracted(source, tmp_path / "whole")
    assert [(out / name).stat().st_ino for name in noted] == kept


def test_complete_files_that_were_damaged_after_a_crash_are_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = [page(f"Page {n}", f"{n} " + WORDS * 500, number=n) for n in range(1, 80)]
    source = write_dump(tmp_path / "dump.xml", *pages)
    expected = extracted(source, tmp_path / "whole")

    def pull_out(stage: str, done: int, total: int) -> None:
        if stage == "articles" and (tmp_path / "out/AA/wiki_01").exists():
            raise _PulledOut

    with pytest.raises(_PulledOut):
        extract_dump(source, tmp_path / "out", ON_DAY, progress=pull_out)
    (tmp_path / "out/AA/wiki_00").write_bytes(b"damaged")
    assert extracted(source, tmp_path / "out") == expected


def test_a_directory_begun_with_other_settings_is_refused(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pull_out(stage: str, done: int, total: int) -> None:
        raise _PulledOut

    monkeypatch.setattr(Commit, "give_up", lambda self: None)  # as if it was killed
    with pytest.raises(_PulledOut):
        extract_dump(sample, tmp_path / "ours", ON_DAY, progress=pull_out)
    with pytest.raises(DatasetError, match="date '2020-01-01', now '2003-04-05'"):
        extract_dump(sample, tmp_path / "ours", ExtractSettings(date=date(2003, 4, 5)))


def test_a_directory_that_holds_something_is_refused(sample: Path, tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "thesis.tex").write_text("precious")
    with pytest.raises(DatasetError, match="is not empty and no articles of ours .it holds thesis.tex."):
        extract_dump(sample, tmp_path / "ours")
    assert contents(tmp_path / "ours") == {"thesis.tex": b"precious"}


def test_a_full_disk_is_an_error_that_names_the_file(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    create = storage._create
    monkeypatch.setattr(storage, "_create", lambda path: create("/dev/full" if "wiki_00" in path else path))
    with pytest.raises(StorageError, match="AA/wiki_00: No space left"):
        extract_dump(sample, tmp_path / "ours")


def test_a_directory_that_cannot_be_made_is_an_error(sample: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="file"):
        extract_dump(sample, tmp_path / "file" / "ours")


def test_files_are_numbered_as_wikiextractor_numbers_them() -> None:
    names = [make_file_name(number) for number in (0, 99, 100, 2600, 67599)]
    assert names == ["AA/wiki_00", "AA/wiki_99", "AB/wiki_00", "BA/wiki_00", "ZZ/wiki_99"]
    with pytest.raises(BertDataError):
        make_file_name(67600)


def test_progress_reaches_the_end_in_both_passes(sample: Path, tmp_path: Path) -> None:
    calls: list[tuple[str, int, int]] = []
    extract_dump(sample, tmp_path / "ours", progress=lambda *call: calls.append(call))
    size = sample.stat().st_size
    assert [call for call in calls if call[1] == size] == [
        ("templates", size, size),
        ("articles", size, size),
    ]


# Workers


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_started_in_any_way_give_the_same_bytes(
    sample: Path, tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"{method} does not exist here")
    monkeypatch.setattr(process_pool, "choose_start_method", lambda: method)
    assert extracted(sample, tmp_path / "ours", workers=2) == extracted(sample, tmp_path / "one")


@pytest.mark.parametrize(
    ("calls", "arguments", "others", "engine"),
    [
        (0, 150, 100, "python"),  # too deep only for a process forked at depth 500 that counted from there
        pytest.param(3, 400, 300, "native", marks=pytest.mark.thorough),
    ],
)
def test_nesting_deeper_than_python_recurses_does_not_depend_on_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: int, arguments: int, others: int, engine: Engine
) -> None:
    monkeypatch.setattr(process_pool, "choose_start_method", lambda: "fork")
    text = "{{t|" * calls + "{{{a|" * arguments + "deep" + "}}}" * arguments + "}}" * calls
    source = write_dump(
        tmp_path / "dump.xml",
        page("Template:T", "{{{1}}}" + text, number=1, namespace=10),
        page("Deep", text + "{{t|" + "{{{b|" * others + "x" + "}}}" * others + "}}", number=2),
    )

    def at_depth(depth: int) -> dict[str, bytes]:
        return at_depth(depth - 1) if depth else files_of(f"depth{len(list(tmp_path.iterdir()))}")

    def files_of(name: str) -> dict[str, bytes]:
        extract_dump(source, tmp_path / name, ON_DAY, engine=engine)
        return files(tmp_path / name)

    assert at_depth(0) == at_depth(500)


def test_blocks_end_with_a_page_and_are_small(tmp_path: Path) -> None:
    pages = [page(f"Page {n}", WORDS * 100, number=n) for n in range(400)]
    source = write_dump(tmp_path / "dump.xml", *pages)
    with ProcessPool(1) as one, dump.open_dump(str(source), one, "3.1.0", max_page_bytes=1 << 20) as opened:
        blocks = list(opened.read_blocks())
    assert len(blocks) > 5
    assert all(block.data.endswith(b"</page>") for block in blocks)
    assert max(len(block.data) for block in blocks) < 3 * dump.BLOCK_BYTES
    assert sum(block.data.count(b"<page>") for block in blocks) == 400


# The golden dump


@pytest.mark.parametrize("count", [1, 2])
def test_the_golden_dump_gives_its_golden_files(tmp_path: Path, count: int) -> None:
    report = extract_dump(GOLDEN / "allerwiki-20200101-pages-articles.xml", tmp_path / "ours", workers=count)
    assert files(tmp_path / "ours") == files(GOLDEN / "extracted")
    assert (report.pages, report.written, report.empty, report.template_pages) == (102, 83, 3, 12)
    assert report.skipped == {
        "namespace 10": 12,
        "redirect": 3,
        "namespace 1": 1,
        "namespace 14": 1,
        "namespace 828": 1,
        "title begins like a template's": 1,
    }


def test_the_golden_files_are_what_wikiextractors_command_makes(tmp_path: Path) -> None:
    source = GOLDEN / "allerwiki-20200101-pages-articles.xml"
    assert wikiextractor_files(source, tmp_path / "theirs", "2020-01-01") == files(GOLDEN / "extracted")


def test_a_changed_dump_of_the_same_size_is_not_taken_for_the_finished_one(
    sample: Path, tmp_path: Path
) -> None:
    output = tmp_path / "ours"
    before = extracted(sample, output)
    sample.write_bytes(sample.read_bytes().replace(b"Nice tower", b"Fine tower", 1))
    with pytest.raises(
        DatasetError, match=r"holds the articles of another enwiki-20191231-sample\.xml"
    ) as caught:
        extract_dump(sample, output, ON_DAY, workers=1)
    assert f"; the md5 of {sample} is {hashlib.md5(sample.read_bytes()).hexdigest()}; " in str(caught.value)
    assert files(output) == before
