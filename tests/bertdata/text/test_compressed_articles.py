"""Compressed articles, beside plain ones or alone, give the parts of plain ones."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import Program
from tests.support.dumps import files

PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    ".bz2": bz2.compress,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
}
ROUTES = {
    "mlperf": ("--eval-articles", "2", "--block-size", "0.0004"),
    "nvidia": ("--recipe", "nvidia", "--training-shards", "2", "--test-shards", "1"),
    "records": ("--sentences", "punkt"),
}

pytestmark = pytest.mark.usefixtures("punkt_tables")


@pytest.fixture
def program(capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(capsys)


def write_articles(place: Path, packings: list[str]) -> Path:
    """Files of two articles each. packings: the ending of each file, empty for a plain one."""
    folder = place / "AA"
    folder.mkdir(parents=True)
    for number, ending in enumerate(packings):
        articles = (
            f'<doc id="{n}" url="u" title="T{n}">\nT{n}\n\nSome words of {n}. They end.\n\n</doc>\n'
            for n in (2 * number, 2 * number + 1)
        )
        data = "".join(articles).encode()
        (folder / f"wiki_0{number}{ending}").write_bytes(PACKINGS[ending](data) if ending else data)
    return place


@pytest.mark.parametrize("packings", [["", ".bz2", ".gz"], [".bz2", ".bz2", ".xz"]], ids=["beside", "alone"])
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.thorough_after_first
def test_compressed_articles_give_the_parts_of_plain_ones(
    program: Program, tmp_path: Path, route: str, packings: list[str]
) -> None:
    plain = write_articles(tmp_path / "plain", ["", "", ""])
    packed = write_articles(tmp_path / "packed", packings)
    for source in (plain, packed):
        made = program("segment", source, "--output", source.with_name(f"{source.name}.text"), *ROUTES[route])
        assert made.status == 0, made.err
        assert "3 files, 6 " in made.out
    expected = files(tmp_path / "plain.text")
    assert len(expected) > (2 if route != "records" else 0)
    assert files(tmp_path / "packed.text") == expected


def test_a_dry_run_reads_the_begin_of_compressed_articles(program: Program, tmp_path: Path) -> None:
    packed = write_articles(tmp_path / "packed", [".bz2", ""])
    made = program("segment", packed, "--output", tmp_path / "text", "--eval-articles", "0", "--dry-run")
    assert made.status == 0, made.err
    assert "wiki_00.bz2" in made.out


def test_the_error_of_too_few_articles_counts_those_of_compressed_files(
    program: Program, tmp_path: Path
) -> None:
    packed = write_articles(tmp_path / "packed", [".bz2", ".bz2"])
    made = program("segment", packed, "--output", tmp_path / "text", "--eval-articles", "100")
    made.assert_one_error(1, "--eval-articles 2 works here (4 articles in all)")
    assert program("segment", packed, "--output", tmp_path / "text", "--eval-articles", "2").status == 0


@pytest.mark.parametrize("route", ROUTES)
def test_a_file_beside_its_compressed_copy_is_refused(program: Program, tmp_path: Path, route: str) -> None:
    place = write_articles(tmp_path / "both", ["", ""])
    plain = place / "AA" / "wiki_00"
    plain.with_name("wiki_00.bz2").write_bytes(bz2.compress(plain.read_bytes()))
    made = program("segment", place, "--output", tmp_path / "text", *ROUTES[route])
    made.assert_one_error(2, "wiki_00 and ", "wiki_00.bz2: one is the other compressed", "remove one")
    assert not (tmp_path / "text").exists()


def test_compressed_articles_that_are_cut_short_are_named(program: Program, tmp_path: Path) -> None:
    place = write_articles(tmp_path / "packed", [".bz2"])
    path = place / "AA" / "wiki_00.bz2"
    path.write_bytes(path.read_bytes()[:-5])
    made = program("segment", place, "--output", tmp_path / "text", "--eval-articles", "0")
    made.assert_one_error(1, "wiki_00.bz2: is damaged bzip2 data")


def test_a_small_file_that_unpacks_without_end_is_refused(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertdata.text.reading.MOST_UNPACKED_BYTES", 1 << 20)
    folder = tmp_path / "packed" / "AA"
    folder.mkdir(parents=True)
    (folder / "wiki_00.bz2").write_bytes(bz2.compress(bytes(3 << 20)))
    made = program("segment", folder.parent, "--output", tmp_path / "text", "--eval-articles", "0")
    made.assert_one_error(1, "wiki_00.bz2: unpacks to more than 1 MiB", "unpack it")
