"""What is forced to disk, and when: a power cut costs no finished file and no finished directory."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bertdata.errors import StorageError
from bertdata.io import storage
from bertdata.io.directory_protocol import Commit
from bertdata.io.whole_directory import open_directory
from tests.support.commands import files_below


class Disk:
    """The inodes that were forced to disk, and what was renamed, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.flushed: set[int] = set()
        self.renamed: list[str] = []
        self.on_renaming: Callable[[Path, Path], None] = lambda source, target: None
        rename = os.replace

        def replace(source: str, target: str) -> None:
            self.on_renaming(Path(source), Path(target))
            rename(source, target)
            self.renamed.append(Path(target).name)

        def fsync(descriptor: int) -> None:
            self.flushed.add(os.fstat(descriptor).st_ino)

        monkeypatch.setattr(os, "replace", replace)
        monkeypatch.setattr(os, "fsync", fsync)

    def holds(self, path: Path) -> bool:
        return path.stat().st_ino in self.flushed


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def commit_of(directory: Path) -> Commit:
    return Commit(str(directory), "paint", {"colour": "red"}, lambda data, where: {"colour": "red"})


def test_all_files_are_on_disk_before_the_manifest_has_its_name(tmp_path: Path, disk: Disk) -> None:
    out = tmp_path / "out"
    commit = commit_of(out)
    commit.claim()
    for name in ("piece", "inner/piece"):
        commit.write(name, b"whole")
        commit.note(name, {"bytes": 5})
    seen = []

    def look(source: Path, target: Path) -> None:
        if target.name == "manifest.json":
            names = [name for name in files_below(out) if not name.startswith("unfinished/")]
            seen.extend(names)
            assert [name for name in names if not disk.holds(out / name)] == []
            assert disk.holds(out)
            assert disk.holds(out / "inner")
            assert disk.holds(source)
            disk.flushed.clear()

    disk.on_renaming = look
    commit.finish(b"manifest\n", b"sums\n", {"vocab.txt": b"words\n"})
    assert seen == ["MD5SUMS", "inner/piece", "piece", "vocab.txt"]
    assert disk.renamed[-1] == "manifest.json"
    assert disk.holds(out)  # the manifest's name


def test_the_plan_is_on_disk_before_the_first_piece(tmp_path: Path, disk: Disk) -> None:
    out = tmp_path / "new" / "out"
    commit_of(out).claim()
    plan = out / "unfinished" / "plan.json"
    leading = [plan, plan.parent, out, out.parent, tmp_path]
    assert [path for path in leading if not disk.holds(path)] == []


def test_pieces_do_not_wait_for_the_disk(tmp_path: Path, disk: Disk) -> None:
    commit = commit_of(tmp_path / "out")
    commit.claim()
    disk.flushed.clear()
    commit.write("piece", b"whole")
    commit.note("piece", {"bytes": 5})
    assert disk.flushed == set()


def test_a_file_is_on_disk_before_it_has_its_name(tmp_path: Path, disk: Disk) -> None:
    seen = []

    def look(source: Path, target: Path) -> None:
        assert source.read_bytes() == b"content"
        seen.append(disk.holds(source))

    disk.on_renaming = look
    with storage.open_output(str(tmp_path / "file")) as file:
        file.write(b"content")
    assert seen == [True]
    assert disk.holds(tmp_path)


def test_files_in_folders_of_a_directory_are_on_disk_before_its_name(tmp_path: Path, disk: Disk) -> None:
    with open_directory(tmp_path / "step-1") as growing:
        (growing / "inner").mkdir()
        (growing / "inner" / "file").write_bytes(b"content")
    assert disk.holds(tmp_path / "step-1" / "inner" / "file")
    assert disk.holds(tmp_path / "step-1" / "inner")


def raising(number: int) -> Callable[[int], None]:
    def fsync(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    return fsync


def test_a_file_system_without_fsync_gets_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", raising(errno.EINVAL))
    with storage.open_output(str(tmp_path / "file")) as file:
        file.write(b"content")
    assert (tmp_path / "file").read_bytes() == b"content"


def test_a_disk_that_fails_when_it_is_asked_keeps_the_older_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"older")
    monkeypatch.setattr(os, "fsync", raising(errno.EIO))
    with (
        pytest.raises(StorageError, match=r"/file: Input/output error$"),
        storage.open_output(str(tmp_path / "file")) as file,
    ):
        file.write(b"content")
    assert files_below(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"older"
