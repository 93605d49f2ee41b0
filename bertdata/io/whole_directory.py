"""Local directories that appear whole or not at all, as files do in ``storage.open_output``."""

import filecmp
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bertdata.errors import DatasetError, StorageError
from bertdata.io import storage
from bertdata.io.directory_protocol import UNFINISHED
from bertdata.io.made_directories import missing_directories, remove_empty

_ATTEMPTS = 10  # against another machine that changes the same names

IsSame = Callable[[Path, Path], bool]


def same_files(one: Path, other: Path) -> bool:
    """True if both directories hold the same names and bytes. Neither has subdirectories."""
    names = sorted(os.listdir(one))
    if names != sorted(os.listdir(other)):
        return False
    return all(filecmp.cmp(one / name, other / name, shallow=False) for name in names)


@contextmanager
def open_directory(path: Path, is_same: IsSame = same_files) -> Iterator[Path]:
    """A local directory that grows aside and appears whole under its path when the block ends well.

    A directory with the same content that is there already stays untouched, another one is replaced.
    It grows in ``unfinished/`` beside the path, under a name of its own: machines that share a file
    system may write the same one at the same time. is_same: compares (the one there, the new one).
    """
    growing = _unfinished(path.parent) / storage.growing_name(path.name)
    missing = missing_directories(str(path.parent))
    try:
        _make(growing)
        yield growing
        for file in (*growing.iterdir(), growing):
            _flush(file)
        _put(growing, path, is_same)
        _flush(path.parent)
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {error}") from None
    finally:
        shutil.rmtree(growing, ignore_errors=True)
        with suppress(OSError):  # others grow there
            growing.parent.rmdir()
            remove_empty(missing)


def _put(growing: Path, path: Path, is_same: IsSame) -> None:
    """Rename the whole directory to its path, unless the same is there."""
    for attempt in range(_ATTEMPTS):
        try:
            growing.rename(path)  # fails if a directory that is not empty is there
            return
        except OSError:
            if not path.is_dir() or attempt == _ATTEMPTS - 1:
                raise
        with suppress(FileNotFoundError):  # another machine has just removed or replaced it
            if is_same(path, growing):
                return
            remove_at_once(path)


def remove_at_once(path: Path) -> None:
    """Remove a directory, or a link to one, so that its name disappears at once: nobody finds half of it.

    FileNotFoundError where another machine has removed it.
    """
    aside = _unfinished(path.parent) / storage.growing_name(path.name)
    for attempt in range(_ATTEMPTS):
        aside.parent.mkdir(exist_ok=True)
        try:
            path.rename(aside)
            break
        except FileNotFoundError:  # another machine may have removed the empty parent in between
            if attempt == _ATTEMPTS - 1 or not path.exists():
                raise
    if aside.is_symlink():  # to a directory that somebody moved to another disk: what it leads to stays
        aside.unlink(missing_ok=True)
    shutil.rmtree(aside, ignore_errors=True)
    with suppress(OSError):  # others grow there
        aside.parent.rmdir()


def _make(growing: Path) -> None:
    """Make the directory. Another machine may remove its empty parent in between."""
    for _ in range(_ATTEMPTS):
        with suppress(FileNotFoundError):
            growing.mkdir(parents=True)
            return
    growing.mkdir(parents=True)


def sweep_directories(parent: Path) -> None:
    """Remove directories that were growing in ``parent`` when a process was stopped."""
    for growing in _unfinished(parent).glob("*.tmp"):
        if storage.is_growing_name(growing.name):
            shutil.rmtree(growing, ignore_errors=True)
    with suppress(OSError):
        (parent / UNFINISHED).rmdir()


def _unfinished(parent: Path) -> Path:
    folder = parent / UNFINISHED
    if folder.is_symlink():
        raise DatasetError(f"{folder}: is a link, expected a directory of ours; remove it")
    return folder


def _flush(path: Path) -> None:
    """Force a file, or a directory's names, onto the disk, so that a power cut leaves no empty shell."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
