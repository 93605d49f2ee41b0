"""Bytes behind the end of a compressed dump, and dumps that hold nothing."""

import bz2
import gzip
from pathlib import Path

import pytest

from bertdata._native import Engine
from bertdata.errors import InputError
from bertdata.wiki.dump.bzip2_blocks import find_blocks
from tests.support.commands import Program, contents
from tests.support.dump_pages import page
from tests.support.dumps import multistream, write_dump

BEHIND = {"a line end": b"\n", "zeros and a line end": bytes(700) + b"\n", "text": b"made by hand\n" * 40}
PACKED = {
    "one stream": bz2.compress,
    "two streams": lambda xml: multistream(xml, [len(xml) // 2]),
    "an empty stream last": lambda xml: bz2.compress(xml) + bz2.compress(b""),
    "gzip": lambda xml: gzip.compress(xml, mtime=0),
    "two members of gzip": lambda xml: gzip.compress(xml[:300], mtime=0) + gzip.compress(xml[300:], mtime=0),
}


@pytest.fixture
def program(capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(capsys)


@pytest.fixture
def xml(tmp_path: Path) -> bytes:
    dump = write_dump(tmp_path / "dump.xml", *(page(f"T{n}", f"Text {n}.", number=n) for n in range(1, 30)))
    return dump.read_bytes()


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("packing", PACKED)
@pytest.mark.thorough_after_first
def test_bytes_behind_the_last_stream_are_passed_over_as_bzip2_and_gzip_do(
    xml: bytes, tmp_path: Path, program: Program, packing: str, behind: str, engine: Engine
) -> None:
    ending = "gz" if "gzip" in packing else "bz2"
    articles = []
    for name, more in (("plain", b""), ("more", BEHIND[behind])):
        dump = tmp_path / name / f"dump.xml.{ending}"
        dump.parent.mkdir()
        dump.write_bytes(PACKED[packing](xml) + more)
        place = tmp_path / name / "made"
        words = ("extract", dump, "--output", place, "--extractor", "2.75", "--date", "2020-01-01")
        made = program(*words, "--engine", engine)
        assert made.status == 0, made.err
        articles.append(contents(place)["AA/wiki_00"])
    assert articles[0] == articles[1] != b""


@pytest.mark.parametrize("cut", [3, 4, 9])
def test_a_file_that_ends_in_the_begin_of_another_stream_is_truncated(xml: bytes, cut: int) -> None:
    data = bz2.compress(xml) + bz2.compress(xml)[:cut]
    place = Path(f"cut{cut}")
    with pytest.raises(InputError, match="truncated|no bzip2 block starts here"):
        _read_all(data, place)


def _read_all(data: bytes, name: Path) -> None:
    from io import BytesIO

    for _ in find_blocks(BytesIO(data), str(name)):
        pass


def test_a_stream_behind_other_bytes_is_not_lost_in_silence(
    xml: bytes, tmp_path: Path, program: Program
) -> None:
    dump = tmp_path / "dump.xml.bz2"
    half = len(xml) // 2
    dump.write_bytes(bz2.compress(xml[:half]) + b"\n" + bz2.compress(xml[half:]))
    program("extract", dump, "--output", tmp_path / "made", "--date", "2020-01-01").assert_one_error(
        1, "dump.xml.bz2", "damaged"
    )


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("dump.xml", b""),
        ("dump.xml", b"\n\n"),
        ("dump.xml.bz2", bz2.compress(b"")),
        ("dump.xml.gz", gzip.compress(b"", mtime=0)),
    ],
)
@pytest.mark.parametrize("extractor", ["3.1.0", "mlperf"])
def test_an_empty_dump_is_called_empty(
    tmp_path: Path, program: Program, name: str, data: bytes, extractor: str
) -> None:
    dump = tmp_path / name
    dump.write_bytes(data)
    words = ("extract", dump, "--output", tmp_path / "made", "--extractor", extractor)
    program(*words).assert_one_error(1, f"{name}: is empty, expected a MediaWiki dump")
