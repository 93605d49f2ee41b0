"""The step by either engine and for either program: the same directories, whatever the workers and blocks."""

import bz2
import re
from datetime import date
from pathlib import Path

import pytest

from bertdata import _native
from bertdata.errors import InputError, UsageError
from bertdata.wiki.articles.files import count_articles_per_file, make_file_name
from bertdata.wiki.dump import dump as dump_module
from bertdata.wiki.dump import passes as dump_passes
from bertdata.wiki.dump.kept_blocks import KeptBlocks
from bertdata.wiki.extract import extract_dump
from bertdata.wiki.settings import ExtractorName, ExtractSettings
from tests.soak.wiki_markup import random_dump
from tests.support.commands import contents
from tests.support.dumps import files, page, write_dump
from tests.support.paths import DUMP
from tests.support.wiki_kit import PINNED, read_dump, read_pinned

DAY = date(2020, 1, 1)
BOTH = ("3.1.0", "mlperf")


@pytest.fixture(params=[1, 2])
def workers(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def settings_of(extractor: ExtractorName, *, templates: bool | None = None) -> ExtractSettings:
    return ExtractSettings(extractor=extractor, date=DAY, templates=templates)


@pytest.mark.parametrize("templates", [True, False])
@pytest.mark.parametrize("extractor", BOTH)
@pytest.mark.thorough_after_first
def test_both_engines_write_the_same_directory(
    tmp_path: Path, extractor: ExtractorName, templates: bool, workers: int
) -> None:
    settings = settings_of(extractor, templates=templates)
    report = extract_dump(DUMP, tmp_path / "native", settings, engine="native", workers=workers)
    extract_dump(DUMP, tmp_path / "python", settings, engine="python", workers=workers)
    assert contents(tmp_path / "native") == contents(tmp_path / "python")
    assert report.written > 50
    assert report.by_package == 0
    assert bool(report.template_pages) is templates


@pytest.mark.parametrize("extractor", BOTH)
@pytest.mark.parametrize("text", ["&#xD800;", "a &#xDFFF; b", "<onlyinclude>&#55296;c</onlyinclude>"])
def test_a_template_with_half_of_a_surrogate_pair_is_the_same_by_either_engine(
    tmp_path: Path, extractor: ExtractorName, text: str
) -> None:
    template = page("Template:Half", "TEXT", number=1, namespace=10).replace("TEXT", text)
    source = write_dump(tmp_path / "dump.xml", template, page("One", "Before {{Half}} after.", number=2))
    for engine in ("native", "python"):
        report = extract_dump(
            source, tmp_path / engine, settings_of(extractor, templates=True), engine=engine
        )
        assert report.template_pages == 1
    assert contents(tmp_path / "native") == contents(tmp_path / "python")


@pytest.mark.parametrize(("name", "templates"), PINNED)
@pytest.mark.thorough_after_first
def test_the_step_writes_the_pinned_programs_files(
    kit: Path, tmp_path: Path, name: str, templates: bool, workers: int
) -> None:
    source = tmp_path / f"{name}.xml"
    source.write_bytes(read_dump(kit, name))
    extract_dump(source, tmp_path / "out", settings_of("mlperf", templates=templates), workers=workers)
    expected = read_pinned(kit, name, templates=templates)
    found = files(tmp_path / "out")
    assert b"".join(found[file] for file in sorted(found)) == expected
    articles = re.findall(rb"<doc .*?\n</doc>\n", expected, re.DOTALL)
    assert sorted(found) == [
        make_file_name(n) for n, _ in enumerate(count_articles_per_file(map(len, articles)))
    ]


@pytest.mark.parametrize("extractor", BOTH)
def test_without_kernels_the_native_engine_is_an_error_and_python_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extractor: ExtractorName
) -> None:
    expected = extract_dump(DUMP, tmp_path / "with", settings_of(extractor)).written
    monkeypatch.setattr(_native, "kernels", None)
    with pytest.raises(UsageError, match="engine native: the kernels are not built"):
        extract_dump(DUMP, tmp_path / "native", settings_of(extractor), engine="native")
    assert not (tmp_path / "native").exists()
    assert extract_dump(DUMP, tmp_path / "default", settings_of(extractor)).written == expected
    assert contents(tmp_path / "default") == contents(tmp_path / "with")


@pytest.mark.parametrize("extractor", BOTH)
def test_small_blocks_of_odd_pages_give_the_bytes_of_large_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extractor: ExtractorName, workers: int
) -> None:
    """Pages without a namespace, repeated ids: a block's result may depend on the block before."""
    source = tmp_path / "odd.xml"
    source.write_bytes(random_dump(5, 150))
    extract_dump(source, tmp_path / "large", settings_of(extractor, templates=True))
    monkeypatch.setattr(dump_module, "BLOCK_BYTES", 300)
    extract_dump(source, tmp_path / "small", settings_of(extractor, templates=True), workers=workers)
    assert contents(tmp_path / "small") == contents(tmp_path / "large")


@pytest.mark.parametrize("extractor", BOTH)
def test_carriage_returns_of_a_compressed_dump_are_newlines(tmp_path: Path, extractor: ExtractorName) -> None:
    xml = write_dump(
        tmp_path / "plain.xml", page("One", "First line.\n\nSecond line.", number=1)
    ).read_bytes()
    (tmp_path / "packed.xml.bz2").write_bytes(bz2.compress(xml.replace(b"\n", b"\r\n")))
    for name in ("plain.xml", "packed.xml.bz2"):
        extract_dump(tmp_path / name, tmp_path / f"{name}.out", settings_of(extractor))
    assert files(tmp_path / "plain.xml.out") == files(tmp_path / "packed.xml.bz2.out")


@pytest.mark.parametrize(("has_room", "times"), [(True, 1), (False, 2)])
def test_a_compressed_dump_is_read_once_where_there_is_room_for_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_room: bool, times: int
) -> None:
    opened = []

    def open_dump(path: str, *more: object, **options: object) -> object:
        opened.append(path)
        return dump_module.open_dump(path, *more, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(dump_passes, "open_dump", open_dump)
    monkeypatch.setattr(KeptBlocks, "_has_room", lambda self, size: has_room)
    monkeypatch.setattr("bertdata.wiki.dump.kept_blocks._IN_MEMORY_BYTES", 1000)
    monkeypatch.setattr("bertdata.wiki.dump.kept_blocks._CHECKED_BYTES", 1000)
    source = tmp_path / "dump.xml.bz2"
    source.write_bytes(bz2.compress(DUMP.read_bytes()))
    extract_dump(source, tmp_path / "out", settings_of("3.1.0"))
    assert len(opened) == times
    extract_dump(DUMP, tmp_path / "plain", settings_of("3.1.0"))
    assert files(tmp_path / "out") == files(tmp_path / "plain")


@pytest.mark.parametrize("extractor", BOTH)
def test_damage_in_the_middle_is_named_by_its_place_and_leaves_nothing(
    tmp_path: Path, extractor: ExtractorName, workers: int
) -> None:
    """Of several streams a later one is damaged, when articles of the first ones were extracted."""
    streams = [bz2.compress(part) for part in _thirds(DUMP.read_bytes())]
    data = bytearray(b"".join(streams))
    data[len(streams[0]) + len(streams[1]) // 2] ^= 16
    source = tmp_path / "dump.xml.bz2"
    source.write_bytes(bytes(data))
    place = len(streams[0]) + 4
    with pytest.raises(InputError, match=rf"dump.xml.bz2: byte {place}: the bzip2 block .* is damaged"):
        extract_dump(source, tmp_path / "out", settings_of(extractor), workers=workers)
    assert not (tmp_path / "out").exists()


def _thirds(data: bytes) -> list[bytes]:
    third = len(data) // 3
    return [data[:third], data[third : 2 * third], data[2 * third :]]


def test_a_page_that_the_kernel_does_not_know_goes_to_the_package_and_is_counted(tmp_path: Path) -> None:
    large = page("Large", "A number: {{#expr: 2**70 }} is large.", number=2)
    source = write_dump(tmp_path / "dump.xml", page("One", "Some text.", number=1), large)
    report = extract_dump(source, tmp_path / "native", settings_of("3.1.0"), engine="native")
    assert (report.written, report.by_package) == (2, 1)
    assert report.lines()[-1] == "1 page was left to the package wikiextractor, which knows what is on them"
    extract_dump(source, tmp_path / "python", settings_of("3.1.0"), engine="python")
    assert contents(tmp_path / "native") == contents(tmp_path / "python")
    assert b"1180591620717411303424" in files(tmp_path / "native")["AA/wiki_00"]


def multiplying(levels: int) -> list[str]:
    """Templates each of which calls the next one four times, and a page that calls the first; its id is 5."""
    calls = [
        page(f"Template:D{n}", f"{{{{D{n + 1}}}}}" * 4, number=100 + n, namespace=10) for n in range(levels)
    ]
    last = page(f"Template:D{levels}", "text " * 20, number=99, namespace=10)
    return [*calls, last, page("Multiplying", "{{D0}}", number=5)]


@pytest.mark.thorough
@pytest.mark.parametrize("extractor", BOTH)
def test_a_page_beyond_a_kernels_limit_ends_the_run_by_name_and_can_be_left_out(
    tmp_path: Path, extractor: ExtractorName, workers: int
) -> None:
    first, last = (page(title, "Some text.", number=number) for title, number in (("First", 1), ("Last", 9)))
    source = write_dump(tmp_path / "dump.xml", first, *multiplying(14), last)
    settings = settings_of(extractor, templates=True)
    with pytest.raises(
        InputError, match=r"page 'Multiplying' \(id 5\): .*run the same command with --skip-page 5"
    ):
        extract_dump(source, tmp_path / "out", settings, engine="native", workers=workers)
    assert files(tmp_path / "out") == {}
    without = ExtractSettings(extractor=extractor, date=DAY, templates=True, skip_pages=("5",))
    extract_dump(source, tmp_path / "out", without, engine="native", workers=workers)
    assert files(tmp_path / "out")["AA/wiki_00"].count(b"<doc ") == 2


@pytest.mark.thorough
@pytest.mark.parametrize("text", ["{", "{{}}", "[[", "''", "&lt;!--"])
@pytest.mark.parametrize("extractor", BOTH)
def test_a_page_of_50_mb_of_marks_is_extracted(tmp_path: Path, extractor: ExtractorName, text: str) -> None:
    marks = page("Marks", text * (50_000_000 // len(text)), number=5)
    source = write_dump(tmp_path / "dump.xml", page("First", "Some text.", number=1), marks)
    assert extract_dump(source, tmp_path / "out", settings_of(extractor), engine="native").written == 2
