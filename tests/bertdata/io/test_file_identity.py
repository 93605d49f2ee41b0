"""A file is the same while nobody writes to it or puts another in its place, and only then."""

import os
import time
from pathlib import Path

import fsspec
import pytest

from bertdata.errors import ChangedInputError
from bertdata.io import storage
from bertdata.io.file_check import compute_file_md5, compute_md5
from bertdata.io.file_identity import FileIdentity, identify_file, read_identified


@pytest.fixture
def hashed(tmp_path: Path) -> FileIdentity:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "alpha"}\n')
    return identify_file(str(path)).with_md5()


def replaced_in_same_time(path: Path, data: bytes) -> None:
    """Put another file in its place, whose time of writing is the old one's."""
    time.sleep(0.02)  # the clock of files ticks every few milliseconds
    old, new = path.stat(), path.with_name("new")
    new.write_bytes(data)
    os.utime(new, ns=(old.st_atime_ns, old.st_mtime_ns))
    new.replace(path)


def test_a_file_that_nobody_touched_is_the_same(hashed: FileIdentity) -> None:
    hashed.check()
    assert hashed.md5 == compute_md5(b'{"text": "alpha"}\n')


def test_a_file_that_grew_is_another(hashed: FileIdentity) -> None:
    with open(hashed.path, "ab") as file:
        file.write(b"more")
    with pytest.raises(ChangedInputError, match="it had 18 bytes and now has 22; run the command again"):
        hashed.check()


def test_a_file_that_was_removed_is_another(hashed: FileIdentity) -> None:
    os.unlink(hashed.path)
    with pytest.raises(ChangedInputError, match="it was removed"):
        hashed.check()


def test_another_file_of_equal_size_and_time_is_another(hashed: FileIdentity) -> None:
    replaced_in_same_time(Path(hashed.path), b'{"text": "gamma"}\n')
    with pytest.raises(ChangedInputError, match="it was written anew"):
        hashed.check()


def test_a_file_with_a_new_link_or_other_rights_is_the_same(hashed: FileIdentity, tmp_path: Path) -> None:
    os.link(hashed.path, tmp_path / "b.jsonl")
    hashed.check()
    os.chmod(hashed.path, 0o444)
    hashed.check()


def test_a_remote_file_that_was_written_anew_is_another() -> None:
    path = "memory://identities/a.txt"
    fsspec.filesystem("memory").pipe("/identities/a.txt", b"alpha")
    found = identify_file(path).with_md5()
    found.check()
    fsspec.filesystem("memory").pipe("/identities/a.txt", b"gamma")
    with pytest.raises(ChangedInputError, match="written anew"):
        found.check()


def test_a_file_that_changes_while_it_is_hashed_has_no_md5(
    hashed: FileIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(path: str) -> str:
        with open(path, "ab") as file:
            file.write(b"more")
        return compute_file_md5(path)

    monkeypatch.setattr("bertdata.io.file_identity.compute_file_md5", slow)
    with pytest.raises(ChangedInputError):
        hashed.with_md5()


def test_a_file_that_changes_while_it_is_read_whole_is_refused(
    hashed: FileIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = storage.read_bytes

    def slow(path: str) -> bytes:
        data = read(path)
        replaced_in_same_time(Path(path), b'{"text": "gamma"}\n')
        return data

    monkeypatch.setattr(storage, "read_bytes", slow)
    with pytest.raises(ChangedInputError):
        read_identified(hashed.path)
