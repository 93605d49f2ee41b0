"""The directory of a cache on a local disk. All workers and runs of a machine may use it at the same time.

It has a sub-directory for each dataset, named by the digest of the dataset::

    bertdata-cache.lock
    bertdata-cache-6f1d.../in-use.lock
    bertdata-cache-6f1d.../part-00003.tfrecord.0cc175b9...             a whole file
    bertdata-cache-6f1d.../part-00004.tfrecord.92eb5ffe....growing     a file that a worker is fetching

There is no other state, and no memory that processes share. Who uses a file is said by locks on the file
itself (``flock``). The operating system releases them when a process ends, however it ends:

- A worker that fetches a file holds an exclusive lock on it. A file ``.growing`` without a lock was left by a
  process that was killed. It is removed.
- A worker that reads a file, or will soon, holds a shared lock on it. A file with a lock is never dropped.
- A run that trains on a dataset, or evaluates on it, holds a shared lock on the dataset's ``in-use.lock``.
- A file appears, is locked and is dropped only under an exclusive lock on ``bertdata-cache.lock``, which is
  held for moments.

Only files with these names are ever removed. Other files stay, and do not count.
"""

import errno
import fcntl
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from bertdata.errors import SettingsError, StorageError

LOCK_NAME = "bertdata-cache.lock"
IN_USE_NAME = "in-use.lock"
_DATASET = re.compile(r"bertdata-cache-[0-9a-f]{32}")
_FILE = re.compile(r".+\.[0-9a-f]{32}(\.growing)?", re.DOTALL)
GROWING = ".growing"
"""Ending of the name of a file that is being fetched."""
_FULL = (errno.ENOSPC, errno.EDQUOT)
_NO_ALLOCATION = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)

Rank = Callable[["CachedFile"], tuple[int, float] | None]
"""Function that says which files to drop first: those with the largest numbers. None: never."""


class CachedFile(NamedTuple):
    """A file in a cache directory.

    bytes: size of the file. A file that is being fetched has its final size from the beginning.
    used: time at which a worker last opened it, in seconds since 1970.
    """

    directory: str
    name: str
    bytes: int
    used: float

    @property
    def path(self) -> str:
        """Path of the file."""
        return os.path.join(self.directory, self.name)

    @property
    def is_growing(self) -> bool:
        """True while a worker fetches the file, and after that worker was killed."""
        return self.name.endswith(GROWING)


class DiskFull(Exception):
    """The disk has no room for a file."""


class CacheFolder:
    """The part of a cache directory that belongs to a dataset.

    SettingsError if the directory cannot be made or written to.
    root: the cache directory, which all datasets share.
    digest: digest of the dataset, 32 hexadecimal digits.
    """

    def __init__(self, root: str, digest: str) -> None:
        self.root = root
        self.directory = os.path.join(root, f"bertdata-cache-{digest}")
        try:
            os.makedirs(self.directory, exist_ok=True)
            with self.locked():
                pass
        except (OSError, StorageError, DiskFull) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise SettingsError(
                f"{root}: cannot be used as cache_dir: {reason}; give a directory on a local disk"
            ) from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the whole cache directory during the block."""
        path = os.path.join(self.root, LOCK_NAME)
        descriptor = _open(path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        except OSError as error:
            raise StorageError(f"{self.root}: {error.strerror or error}") from error
        finally:
            os.close(descriptor)

    def use(self) -> int:
        """Say that a run uses the dataset, until the returned descriptor is closed."""
        try:
            descriptor = _open(os.path.join(self.directory, IN_USE_NAME), os.O_RDWR | os.O_CREAT)
        except DiskFull as error:
            raise StorageError(f"{self.root}: {error}") from None
        try:
            with self.locked():
                fcntl.flock(descriptor, fcntl.LOCK_SH)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def list_names(self) -> set[str]:
        """Return the names of the dataset's files, fetched or being fetched."""
        with suppress(FileNotFoundError):
            return set(os.listdir(self.directory))
        return set()

    def open_whole(self, name: str) -> int | None:
        """Return a descriptor of a file with a shared lock on it, or None if the file was not fetched yet.

        Call this under the lock of the cache directory.
        """
        path = os.path.join(self.directory, name)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        # Only the time of the last access, because readers look at the time of the last modification.
        with suppress(OSError):
            os.utime(path, ns=(time.time_ns(), os.fstat(descriptor).st_mtime_ns))
        return descriptor

    def begin(self, name: str, size: int, limit: int, rank: Rank) -> "FetchStart":
        """Begin to fetch a file: drop other files until there is room, and reserve its place on the disk.

        Call this under the lock of the cache directory.
        size: bytes of the file.
        limit: bytes that all files of the cache directory may have together.
        rank: says which files may be dropped, and which of them first.
        Raises DiskFull if the disk has no room for it.
        """
        path = os.path.join(self.directory, name + GROWING)
        # A worker that waits for another one asks again and again, so the other files are not listed for it.
        if os.path.lexists(path) and not _remove_half_file(path):
            return FetchStart(is_busy=True)
        files = self._list_without_half_files()
        missing = sum(file.bytes for file in files) + size - limit
        if missing > 0 and not self._drop(files, missing, rank):
            return FetchStart()
        os.makedirs(self.directory, exist_ok=True)
        descriptor = _open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _allocate(descriptor, size)
        except BaseException:
            os.unlink(path)
            os.close(descriptor)
            raise
        return FetchStart(descriptor=descriptor)

    def finish(self, name: str, descriptor: int) -> None:
        """Give a fetched file its final name. The descriptor then has a shared lock."""
        # After a power cut, the final name must never lead to a file without its contents.
        try:
            os.fsync(descriptor)
        except OSError as error:
            raise_if_full(error)
            raise
        path = os.path.join(self.directory, name)
        with self.locked():
            os.replace(path + GROWING, path)
            fcntl.flock(descriptor, fcntl.LOCK_SH)

    def abandon(self, name: str, descriptor: int) -> None:
        """Remove a file that could not be fetched."""
        # The error that ended the fetching is the one to report, also if the directory is gone.
        with suppress(StorageError, DiskFull), self.locked():
            os.unlink(os.path.join(self.directory, name + GROWING))
        os.close(descriptor)

    def remove_damaged(self, name: str, descriptor: int) -> None:
        """Remove a file whose contents are wrong, unless another process has replaced it."""
        path = os.path.join(self.directory, name)
        try:
            with self.locked(), suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.lstat(path)):
                    os.unlink(path)
        finally:
            os.close(descriptor)

    def count_bytes(self) -> int:
        """Return the bytes of all files of the cache directory."""
        with self.locked():
            return sum(file.bytes for file in self._list_without_half_files())

    def list_foreign(self) -> list[str]:
        """Return the paths of files and directories in the dataset's directory that the cache did not
        write.
        """
        names = sorted(self.list_names() - {IN_USE_NAME})
        return [os.path.join(self.directory, name) for name in names if not _FILE.fullmatch(name)]

    def _drop(self, files: Sequence[CachedFile], missing: int, rank: Rank) -> bool:
        """Drop files until ``missing`` bytes are free. Return False, and drop none, if that is not possible.

        A file that a process has locked is not dropped.
        """
        ranked = [(key, file) for file in files if not file.is_growing and (key := rank(file)) is not None]
        held, found = list[tuple[int, str]](), 0
        try:
            for _, file in sorted(ranked, reverse=True):
                if found >= missing:
                    break
                if (descriptor := _lock_unused(file.path)) is not None:
                    held.append((descriptor, file.path))
                    found += file.bytes
            if found < missing:
                return False
            for _, path in held:
                os.unlink(path)
            return True
        finally:
            for descriptor, _ in held:
                os.close(descriptor)

    def _list_without_half_files(self) -> list[CachedFile]:
        """Return the files of all datasets. Remove files that a killed process was fetching."""
        found = list[CachedFile]()
        for directory in _list_datasets(self.root):
            for entry in os.scandir(directory):
                if not _FILE.fullmatch(entry.name) or not entry.is_file(follow_symlinks=False):
                    continue
                status = entry.stat(follow_symlinks=False)
                file = CachedFile(directory, entry.name, status.st_size, status.st_atime)
                if not (file.is_growing and _remove_half_file(file.path)):
                    found.append(file)
        return found


class FetchStart(NamedTuple):
    """Result of an attempt to begin fetching a file.

    Without a descriptor, and if ``is_busy`` is False, the cache has no room for the file.

    descriptor: the file to write to, with an exclusive lock.
    is_busy: whether another worker is fetching it.
    """

    descriptor: int | None = None
    is_busy: bool = False


def is_in_use(directory: str) -> bool:
    """Return True if a run uses the dataset of this sub-directory of a cache directory.

    Call this under the lock of the cache directory.
    """
    path = os.path.join(directory, IN_USE_NAME)
    if not os.path.lexists(path):
        return False
    descriptor = _lock_unused(path)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False


def find_free_bytes(root: str) -> int:
    """Return how many bytes the disk of a cache directory has free."""
    found = os.statvfs(root)
    return found.f_bavail * found.f_frsize


def _list_datasets(root: str) -> Iterator[str]:
    """Yield the paths of the sub-directories of all datasets."""
    for entry in sorted(os.scandir(root), key=lambda entry: entry.name):
        if _DATASET.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
            yield entry.path


def _open(path: str, flags: int) -> int:
    """Open a file of the cache. Raises DiskFull, or StorageError with its path."""
    try:
        return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        raise_if_full(error)
        raise StorageError(f"{path}: {error.strerror}") from None


def raise_if_full(error: OSError) -> None:
    """Raise DiskFull if an error says that the disk has no room."""
    if error.errno in _FULL:
        raise DiskFull("no space left on the disk") from None


def _lock_unused(path: str) -> int | None:
    """Return a descriptor with an exclusive lock on a file, or None if a process has locked it."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:  # for example a file of another user
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _remove_half_file(path: str) -> bool:
    """Remove a file that a killed process was fetching. Return False if a process is still fetching it."""
    descriptor = _lock_unused(path)
    if descriptor is None:
        return False
    try:
        os.unlink(path)
    finally:
        os.close(descriptor)
    return True


def _allocate(descriptor: int, size: int) -> None:
    """Give a file its final size and reserve the room for it. Raises DiskFull if there is none."""
    try:
        os.ftruncate(descriptor, size)
        if size:
            os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        raise_if_full(error)
        # Some file systems cannot reserve room. A full disk then shows while the file is written.
        if error.errno not in _NO_ALLOCATION:
            raise
