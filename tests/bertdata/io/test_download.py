"""Published files: downloaded, resumed, held against their digest."""

import fcntl
import hashlib
import shutil
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from bertdata.errors import AssetError, StorageError
from bertdata.io.download import Download, download_file
from tests.support import file_server
from tests.support.file_server import FileServer, serving

DATA = bytes(range(256)) * 4096


@pytest.fixture
def server() -> Iterator[FileServer]:
    with serving() as one:
        one.files["/file"] = DATA
        yield one


@pytest.fixture
def wanted(server, tmp_path) -> Download:
    return Download(f"{server.url}/file", tmp_path / "new" / "file", hashlib.sha256(DATA).hexdigest())


def run(wanted: Download) -> tuple[bool, list[tuple[int, int]], list[float]]:
    """Whether it was made, what progress was told, and the pauses."""
    told, pauses = list[tuple[int, int]](), list[float]()
    made = download_file(wanted, lambda here, total: told.append((here, total)), pauses.append)
    return made, told, pauses


@pytest.mark.parametrize("algorithm", ["md5", "sha1", "sha256"])
def test_a_file_is_downloaded_once(server, wanted, algorithm):
    wanted = Download(wanted.url, wanted.path, hashlib.new(algorithm, DATA).hexdigest())
    made, told, pauses = run(wanted)
    assert made
    assert wanted.path.read_bytes() == DATA
    assert not wanted.part.exists()
    assert told[0] == (0, len(DATA))
    assert told[-1] == (len(DATA), len(DATA))
    assert pauses == []
    assert run(wanted) == (False, [], [])
    assert len(server.asked) == 1


def test_a_stopped_download_goes_on_where_it_was(server, wanted):
    wanted.path.parent.mkdir()
    wanted.part.write_bytes(DATA[:1000])
    made, told, _ = run(wanted)
    assert made
    assert wanted.path.read_bytes() == DATA
    assert server.asked == [("/file", "bytes=1000-")]
    assert told[0] == (1000, len(DATA))


def test_connections_that_break_are_tried_again_while_bytes_arrive(server, wanted):
    server.cut = len(DATA) // 9
    made, _, pauses = run(wanted)
    assert made
    assert wanted.path.read_bytes() == DATA
    assert len(server.asked) == 10
    assert pauses == [1.0] * 9


def test_a_server_that_sends_nothing_ends_the_download_and_what_came_is_kept(server, wanted):
    wanted.path.parent.mkdir()
    wanted.part.write_bytes(DATA[:1000])
    server.cut = 0
    found = r"the connection ended at byte 1,000 of 1,048,576; 1,000 bytes are kept, run the same command"
    with pytest.raises(AssetError, match=found):
        run(wanted)
    assert len(server.asked) == 5
    assert wanted.part.read_bytes() == DATA[:1000]


def test_a_server_without_ranges_sends_all_of_it_again(server, wanted):
    wanted.path.parent.mkdir()
    wanted.part.write_bytes(b"another file's beginning")
    server.knows_ranges = False
    assert run(wanted)[0]
    assert wanted.path.read_bytes() == DATA


def test_a_part_that_is_whole_needs_its_digest_alone(server, wanted):
    wanted.path.parent.mkdir()
    wanted.part.write_bytes(DATA)
    assert run(wanted)[0]
    assert wanted.path.read_bytes() == DATA


@pytest.mark.parametrize("begun", [b"", b"another file's beginning", b"#" * (len(DATA) + 9)])
def test_a_file_of_another_digest_is_never_kept(server, wanted, begun):
    wanted.path.parent.mkdir()
    wanted.part.write_bytes(begun)
    if not begun:
        server.files["/file"] = DATA[::-1]
    with pytest.raises(AssetError, match=rf"{wanted.url}: sha256 [0-9a-f]+, published is {wanted.digest}"):
        run(wanted)
    assert not wanted.path.exists()
    assert not wanted.part.exists()


def test_a_file_that_is_there_with_another_digest_is_refused_and_stays(server, wanted):
    wanted.path.parent.mkdir()
    wanted.path.write_bytes(b"my own")
    with pytest.raises(AssetError, match=f"{wanted.path}: sha256 .*; remove {wanted.path} and run again"):
        run(wanted)
    assert wanted.path.read_bytes() == b"my own"
    assert server.asked == []


@pytest.mark.parametrize("length", ["abc", "-5", "1" * 5000])
def test_a_length_that_is_no_number_says_nothing(server, wanted, length, monkeypatch):
    monkeypatch.setattr(file_server, "length_of", lambda data: length)
    run(wanted)
    assert wanted.path.read_bytes() == DATA


def test_a_file_that_the_server_has_not_is_told_at_once(server, wanted):
    server.files.clear()
    with pytest.raises(AssetError, match=f"{wanted.url}: the server answers 404"):
        run(wanted)
    assert len(server.asked) == 1


def test_a_server_that_is_not_there_is_told(wanted, server):
    with pytest.raises(AssetError, match="refused"):
        run(Download("http://127.0.0.1:9/file", wanted.path, wanted.digest))


def test_two_processes_do_not_write_one_file(wanted):
    wanted.path.parent.mkdir()
    with open(wanted.part, "ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(AssetError, match="another process is downloading this file"):
            run(wanted)


def test_a_disk_without_room_is_told_before_anything_is_written(wanted, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    with pytest.raises(StorageError, match="1,048,576 bytes are to come, the disk has room for 1,000"):
        run(wanted)
    assert wanted.part.read_bytes() == b""


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_a_server_that_cuts_every_answer_short_is_given_up(server, wanted, knows_ranges):
    """Either some bytes a connection, for ever, or the same ones again and again."""
    server.cut, server.knows_ranges = (10 if knows_ranges else 100_000), knows_ranges
    with pytest.raises(AssetError, match=r"the connection ended at byte [\d,]+ of 1,048,576; .* are kept"):
        run(wanted)
    assert len(server.asked) <= 12
