"""Local directories that appear whole or not at all, as files do in ``storage.open_output``."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bertdata.errors import DatasetError, StorageError
from bertdata.io import storage
from bertdata.io.commit import UNFINISHED


@contextmanager
def open_directory(path: Path) -> Iterator[Path]:
    """A local directory that grows aside and appears whole under its path when the block ends well.

    What was at the path is replaced. It grows in ``unfinished/`` beside the path, under a name of its
    own: machines that share a file system may write the same one at the same time.
    """
    growing = _unfinished(path.parent) / storage.growing_name(path.name)
    try:
        _make(growing)
        yield growing
        for file in (*growing.iterdir(), growing):
            _flush(file)
        shutil.rmtree(path, ignore_errors=True)
        try:
            growing.rename(path)
        except OSError:
            if not path.is_dir():  # another machine may just have put it there
                raise
        _flush(path.parent)
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {error}") from None
    finally:
        shutil.rmtree(growing, ignore_errors=True)
        with suppress(OSError):  # others grow there
            growing.parent.rmdir()


def _make(growing: Path) -> None:
    """Make the directory; another machine may remove its empty parent in between."""
    for _ in range(10):
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
