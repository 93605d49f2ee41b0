"""Creation of local directories that appear complete or not at all."""

import filecmp
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bertdata.errors import DatasetError, StorageError
from bertdata.io import storage
from bertdata.io.directory_protocol import UNFINISHED
from bertdata.io.made_directories import list_missing_directories, remove_empty_directories

_ATTEMPTS = 10  # how often to try again if another machine creates or removes the same directory

IsSame = Callable[[Path, Path], bool]


def has_same_files(one: Path, other: Path) -> bool:
    """Return True if both directories contain the same file names with the same bytes.

    Neither directory may have sub-directories.
    """
    names = sorted(os.listdir(one))
    if names != sorted(os.listdir(other)):
        return False
    return all(filecmp.cmp(one / name, other / name, shallow=False) for name in names)


@contextmanager
def open_directory(path: Path, is_same: IsSame = has_same_files) -> Iterator[Path]:
    """Create a local directory that appears under its path when the block ends without an error.

    If the path is an existing directory with the same contents, it stays. If its contents differ, it is
    replaced. The new directory is written under a random name in a folder ``unfinished/`` next to the path,
    so that several machines may write the same directory at the same time.

    is_same: function that compares the existing directory (first argument) with the new one.
    """
    growing = _find_unfinished(path.parent) / storage.make_growing_name(path.name)
    missing = list_missing_directories(str(path.parent))
    try:
        _make_directory(growing)
        yield growing
        # After a power cut, the final name must never lead to empty files. So first force the contents of all
        # files and the list of their names to disk. Then rename the directory to its final name, and force
        # that name to disk.
        for file in growing.rglob("*"):  # sub-directories too, whose fsync is that of their names
            storage.flush_file(str(file), str(path))
        storage.flush_directory(str(growing))
        _move_into_place(growing, path, is_same)
        storage.flush_directory(str(path.parent))
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {error}") from None
    finally:
        shutil.rmtree(growing, ignore_errors=True)  # does nothing after a successful rename
        with suppress(OSError):  # not empty, because another process is writing there
            growing.parent.rmdir()
            remove_empty_directories(missing)


def _move_into_place(growing: Path, path: Path, is_same: IsSame) -> None:
    """Rename the new directory to its path, unless a directory with the same contents is already there."""
    for attempt in range(_ATTEMPTS):
        try:
            growing.rename(path)  # fails if the path is a directory with files in it
            return
        except OSError:
            if not path.is_dir() or attempt == _ATTEMPTS - 1:
                raise
        # rename cannot replace a directory that has files. Move the old one out of the way and try again.
        with suppress(FileNotFoundError):  # another machine has just removed it
            if is_same(path, growing):
                return
            remove_at_once(path)


def remove_at_once(path: Path) -> None:
    """Remove a directory, or a link to one, so that other processes never see it half empty.

    It is first renamed to a temporary name, then deleted file by file. Raises FileNotFoundError if another
    machine has removed it.
    """
    aside = _find_unfinished(path.parent) / storage.make_growing_name(path.name)
    for attempt in range(_ATTEMPTS):
        aside.parent.mkdir(exist_ok=True)
        try:
            path.rename(aside)
            break
        except FileNotFoundError:  # another machine may have removed the empty unfinished/ in between
            if attempt == _ATTEMPTS - 1 or not path.exists():
                raise
    if aside.is_symlink():  # remove only the link; a user may have moved the directory to another disk
        aside.unlink(missing_ok=True)
    shutil.rmtree(aside, ignore_errors=True)
    with suppress(OSError):  # not empty, because another process is writing there
        aside.parent.rmdir()


def _make_directory(growing: Path) -> None:
    """Create the directory. Tries again if another machine removes its empty parent in between."""
    for _ in range(_ATTEMPTS):
        with suppress(FileNotFoundError):
            growing.mkdir(parents=True)
            return
    growing.mkdir(parents=True)


def sweep_directories(parent: Path) -> None:
    """Delete directories in ``parent`` that a stopped process left half-written."""
    for growing in _find_unfinished(parent).glob("*.tmp"):
        if storage.is_growing_name(growing.name):
            shutil.rmtree(growing, ignore_errors=True)
    with suppress(OSError):
        (parent / UNFINISHED).rmdir()


def _find_unfinished(parent: Path) -> Path:
    """Return the path of ``parent``'s ``unfinished/``. Raises DatasetError if it is a link."""
    folder = parent / UNFINISHED
    if folder.is_symlink():
        raise DatasetError(f"{folder}: is a link, expected a directory of ours; remove it")
    return folder
