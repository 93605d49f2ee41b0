"""Pages that wikiextractor would work on for ever: a limit ends the run, and --skip-page leaves them out."""

import json
import multiprocessing
import re
from datetime import date
from functools import partial
from pathlib import Path

import pytest

from bertdata._native import Engine
from bertdata.errors import DatasetError, InputError, SettingsError
from bertdata.io import process_pool
from bertdata.wiki import extract as step
from bertdata.wiki.page_rules import PageLimits, PageRules
from bertdata.wiki.settings import ExtractSettings
from bertdata.wiki.wikiextractor import package_extractor as package
from tests.support.commands import contents
from tests.support.dumps import HOSTILE_ID, HOSTILE_PAGES, files, page, write_dump

extract = partial(step.extract_dump, engine="python")
WORDS = "Water runs down the old stone steps and out into the garden below. "
ON_DAY = ExtractSettings(date=date(2020, 1, 1))
WITHOUT = ExtractSettings(date=date(2020, 1, 1), skip_pages=(HOSTILE_ID,))
SHORT = PageLimits(cpu_seconds=0.25)
POWER = "asks #expr for a power of more than 5000 digits"
QUICK = ("a power and comments", "a template's comments")
"""Those that need not wait for make test-thorough: one of each pass."""
BUSY = HOSTILE_PAGES["a power and comments"]
FIRST, LAST = page("First", WORDS, number=1), page("Last", WORDS, number=9)


def many_pages(count: int, start: int = 10) -> list[str]:
    """Pages for a file of articles each 25."""
    return [page(f"Page {n}", f"{n} " + WORDS * 600, number=n) for n in range(start, start + count)]


@pytest.fixture(params=[1, 2])
def workers(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param(pages, id=name, marks=() if name in QUICK else pytest.mark.thorough)
        for name, pages in HOSTILE_PAGES.items()
    ],
)
@pytest.mark.thorough
def test_a_page_beyond_its_cpu_seconds_ends_the_run_by_name_and_can_be_left_out(
    tmp_path: Path, hostile: str
) -> None:
    source = write_dump(tmp_path / "dump.xml", FIRST, hostile, LAST)
    title = re.findall("<title>(.*)</title>", hostile)[-1]
    with pytest.raises(InputError) as raised:
        extract(source, tmp_path / "out", ON_DAY, limits=SHORT)
    assert str(raised.value) == (
        f"{source}: page '{title}' (id 5): took more than 0.25 CPU seconds; run the same command with "
        "--skip-page 5 to leave it out: what is finished is kept"
    )
    report = extract(source, tmp_path / "out", WITHOUT, limits=SHORT)
    assert report.skipped["left out by --skip-page"] == 1
    plain = write_dump(tmp_path / "plain.xml", FIRST, LAST)
    extract(plain, tmp_path / "plain", ON_DAY)
    assert files(tmp_path / "out") == files(tmp_path / "plain")


def test_the_limit_holds_with_two_workers_too(tmp_path: Path) -> None:
    source = write_dump(tmp_path / "dump.xml", FIRST, BUSY, LAST)
    with pytest.raises(InputError, match="page 'Power' .id 5.: took more than 0.25 CPU seconds"):
        extract(source, tmp_path / "out", ON_DAY, workers=2, limits=SHORT)
    assert files(tmp_path / "out") == {}


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is watched where /proc tells it")
def test_a_page_that_takes_too_much_memory_ends_the_run_by_name(tmp_path: Path, workers: int) -> None:
    source = write_dump(tmp_path / "dump.xml", FIRST, HOSTILE_PAGES["padding without end"])
    with pytest.raises(InputError, match="page 'Padding' .id 5.: took more than 0.0625 GiB .*--skip-page 5 "):
        extract(source, tmp_path / "out", ON_DAY, workers=workers, limits=PageLimits(memory_bytes=64 << 20))


def test_want_of_memory_is_no_reason_to_skip_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object, page: object) -> bytes:
        raise MemoryError

    monkeypatch.setattr(package.Renderer, "render", fail)
    monkeypatch.setattr(process_pool, "_may_start_processes", lambda: False)  # which would not have the patch
    source = write_dump(tmp_path / "dump.xml", FIRST)
    with pytest.raises(InputError, match="page 'First' .id 1.: took more memory than there is"):
        extract(source, tmp_path / "out", ON_DAY)


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize(
    ("formula", "found"),
    [
        ("9**9**9", POWER),
        ("2**70 + 9**9**9", POWER),  # 2**70 alone leaves the page to the package
        ("(10**4000)**2", POWER),
        ("5 round -999999999", "asks #expr to round to more than 100000 places"),
        ("5 round -1e12", "asks #expr to round to more than 100000 places"),
    ],
)
@pytest.mark.thorough_after_first
def test_a_power_of_too_many_digits_is_refused_at_once(
    tmp_path: Path, engine: Engine, formula: str, found: str
) -> None:
    power = page("Power", f"{{{{#expr: {formula} }}}}", number=5)
    source = write_dump(tmp_path / "dump.xml", FIRST, power, LAST)
    with pytest.raises(InputError) as raised:
        step.extract_dump(source, tmp_path / "out", ON_DAY, engine=engine, limits=PageLimits(cpu_seconds=10))
    assert str(raised.value) == (
        f"{source}: page 'Power' (id 5): {found}; run the same command with --skip-page 5 to leave it out: "
        "what is finished is kept"
    )
    assert step.extract_dump(source, tmp_path / "out", WITHOUT, engine=engine).written == 2


@pytest.mark.parametrize("engine", ["native", "python"])
def test_a_power_that_is_not_computed_is_not_refused(tmp_path: Path, engine: Engine) -> None:
    formulas = (
        "0 and 9**9**9",
        "1 or 9**9**9",
        "9**9**9 )",
        "1/0 + 9**9**9",
        "1**9**9**0",
        "9.0**9**9",
        "2**16000",
    )
    text = " ".join(f"a{{{{#expr: {formula} }}}}" for formula in formulas)
    source = write_dump(tmp_path / "dump.xml", page("Power", text, number=5))
    extract(source, tmp_path / "package", ON_DAY, engine="python")
    step.extract_dump(source, tmp_path / "out", ON_DAY, engine=engine)
    assert files(tmp_path / "out") == files(tmp_path / "package")
    assert b"\na0 a1 a a a1 a a\n" in files(tmp_path / "out")["AA/wiki_00"]


def test_outside_a_worker_no_limit_ends_the_process() -> None:
    with PageRules(dump="dump.xml", limits=PageLimits(cpu_seconds=0.001)).limit_page("1", "Title"):
        assert sum(range(3_000_000))


def test_a_process_that_may_start_none_extracts_without_a_limit(tmp_path: Path) -> None:
    source = write_dump(tmp_path / "dump.xml", FIRST)
    process = multiprocessing.get_context("spawn").Process(
        target=extract, args=(source, tmp_path / "out", ON_DAY), daemon=True
    )
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert b"<doc " in contents(tmp_path / "out")["AA/wiki_00"]


def test_ids_that_are_left_out_stand_in_the_manifest_sorted_and_once(tmp_path: Path) -> None:
    source = write_dump(tmp_path / "dump.xml", *many_pages(3, start=9))
    extract(source, tmp_path / "out", ExtractSettings(date=ON_DAY.date, skip_pages=("11", "9", "11")))
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_bytes())
    assert manifest["settings"]["skip_pages"] == ["9", "11"]
    assert manifest["pages"]["skipped"] == {"left out by --skip-page": 2}
    extract(source, tmp_path / "all", ON_DAY)
    assert "skip_pages" not in json.loads((tmp_path / "all" / "manifest.json").read_bytes())["settings"]


def test_an_id_that_no_page_has_is_told(tmp_path: Path) -> None:
    source = write_dump(tmp_path / "dump.xml", FIRST)
    report = extract(source, tmp_path / "out", WITHOUT)
    assert report.faults == ["page id 5: not in the dump, nothing to leave out"]
    assert extract(source, tmp_path / "out", WITHOUT) == report  # from the manifest
    with pytest.raises(SettingsError, match="empty id"):
        ExtractSettings(skip_pages=("",))


def test_a_finished_directory_of_other_ids_is_refused(tmp_path: Path) -> None:
    source = write_dump(tmp_path / "dump.xml", FIRST, page("Fifth", WORDS, number=5))
    extract(source, tmp_path / "with", ON_DAY)
    with pytest.raises(DatasetError, match=r"was made with other settings: other skipped pages \(5\)"):
        extract(source, tmp_path / "with", WITHOUT)
    extract(source, tmp_path / "without", WITHOUT)
    with pytest.raises(DatasetError, match=r"was made with other settings: other skipped pages \(5\)"):
        extract(source, tmp_path / "without", ON_DAY)


@pytest.mark.thorough
def test_a_run_that_leaves_out_the_page_at_which_the_last_one_ended_keeps_its_files(tmp_path: Path) -> None:
    source = write_dump(tmp_path / "dump.xml", *many_pages(60), BUSY, LAST)
    with pytest.raises(InputError, match="CPU seconds"):
        extract(source, tmp_path / "out", ON_DAY, limits=SHORT)
    first = tmp_path / "out" / "AA" / "wiki_00"
    written = first.stat().st_ino
    with pytest.raises(InputError, match="CPU seconds"):  # the kept files are of a run without it
        extract(source, tmp_path / "out", ON_DAY, limits=SHORT)
    assert first.stat().st_ino == written
    extract(source, tmp_path / "out", WITHOUT)
    assert first.stat().st_ino == written
    extract(source, tmp_path / "fresh", WITHOUT)
    assert contents(tmp_path / "out") == contents(tmp_path / "fresh")


@pytest.mark.thorough
@pytest.mark.parametrize("also", ["12", "3"])
def test_a_run_that_leaves_out_more_begins_anew_where_that_is_in_finished_files(
    tmp_path: Path, also: str
) -> None:
    template = page("Template:Note", "noted", number=3, namespace=10)
    pages = [text.replace("Water", "{{Note}} water") for text in many_pages(60)]
    source = write_dump(tmp_path / "dump.xml", template, *pages, BUSY, LAST)
    with pytest.raises(InputError, match="CPU seconds"):
        extract(source, tmp_path / "out", ON_DAY, limits=SHORT)
    assert (tmp_path / "out" / "AA" / "wiki_00").exists()
    settings = ExtractSettings(date=ON_DAY.date, skip_pages=(HOSTILE_ID, also))
    extract(source, tmp_path / "out", settings)
    extract(source, tmp_path / "fresh", settings)
    assert contents(tmp_path / "out") == contents(tmp_path / "fresh")
