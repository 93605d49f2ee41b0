"""A lock on a local directory that is being made: one run writes there at a time.

An advisory POSIX record lock on ``unfinished/run.lock``. The system drops it when its process ends, however
that ends. Forked workers do not inherit it: they neither keep it when the launcher is gone nor drop it
when they end. It also holds between machines that share a file system, as far as that passes locks on; where
the file system has none, and in object stores, nothing is locked.
"""

import errno
import fcntl
import os
import re
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from time import sleep

from bertdata.errors import DatasetError, StorageError
from bertdata.io import storage
from bertdata.io.made_directories import missing_directories, remove_empty

LOCK_NAME = "run.lock"

_OWNER = r"bertdata: (process \d+ on \S+)\n"
_TAKEN = {errno.EAGAIN, errno.EACCES}
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
_ATTEMPTS = 100
_READS = 20

_held: set[tuple[int, str]] = set()
"""Process and path of the locks held here: one process may lock a file twice, and drops both at once."""


@contextmanager
def lock_directory(folder: str, shared_with: Collection[str] = ()) -> Iterator[None]:
    """Hold the lock of a directory. folder: its ``unfinished``, which is made where it is missing.

    DatasetError where another run holds it. At the end the lock file goes, and the folder if it is empty;
    so do the directory and its parents if they were made here.
    shared_with: processes of the same run, as ``this_process`` names them: one that holds the lock holds it
    for this one too.
    """
    if storage.is_remote(folder):
        yield
        return
    path = os.path.join(os.path.realpath(folder.removeprefix("file://")), LOCK_NAME)
    key = os.getpid(), path
    if key in _held:
        raise _in_use(folder, this_process())
    missing = missing_directories(os.path.dirname(os.path.dirname(path)))
    descriptor = _acquire(folder, path, shared_with)
    if descriptor is None:
        yield
        return
    _held.add(key)
    try:
        yield
    finally:
        with suppress(OSError):
            if os.path.samestat(os.fstat(descriptor), os.lstat(path)):
                os.unlink(path)
        _held.discard(key)
        os.close(descriptor)
        with suppress(OSError):  # not empty
            os.rmdir(os.path.dirname(path))
            remove_empty(missing)


def remove_stale_lock(folder: str) -> None:
    """Remove the lock file that a killed run left, and a folder that is then empty. A held one stays."""
    if storage.exists(storage.join(folder, LOCK_NAME)):
        with suppress(DatasetError, StorageError), lock_directory(folder):
            pass


def _acquire(folder: str, path: str, shared_with: Collection[str]) -> int | None:
    """The descriptor of the locked file, the one that has the path. None: one of those processes has it."""
    for _ in range(_ATTEMPTS):  # the run before may remove the file, or the folder, in between
        try:
            with suppress(FileExistsError):
                os.makedirs(os.path.dirname(path))
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StorageError(f"{path}: {error.strerror}") from None
        try:
            if (owner := _lock(path, descriptor, shared_with)) is not None:
                if owner not in shared_with:
                    raise _in_use(folder, owner)
                os.close(descriptor)
                return None
            if os.path.samestat(os.fstat(descriptor), os.lstat(path)):
                _write_owner(path, descriptor)
                return descriptor
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    raise StorageError(f"{path}: cannot be made: the directory vanishes again and again")


def _lock(path: str, descriptor: int, shared_with: Collection[str]) -> str | None:
    """Lock the file. Returns the process that holds the lock already, if one does."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise DatasetError(f"{path}: is no lock of ours; remove it")
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _TAKEN:
            return _owner(descriptor, shared_with)
        if error.errno not in _NO_LOCKS:
            raise StorageError(f"{path}: {error.strerror}") from None
    return None


def _write_owner(path: str, descriptor: int) -> None:
    if (text := _read(descriptor)) and not re.match(_OWNER, text):
        raise DatasetError(f"{path}: is no lock of ours; remove it")
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"bertdata: {this_process()}\n".encode(), 0)
    except OSError as error:  # a full disk
        raise StorageError(f"{path}: {error.strerror}") from None


def _owner(descriptor: int, shared_with: Collection[str]) -> str:
    """The process that holds the lock, which it writes into the file just after it has the lock.

    Where one of a run's own may hold it, the name of another may be a killed run's, not yet overwritten.
    """
    owner = "process unknown"
    for _ in range(_READS):
        if found := re.match(_OWNER, _read(descriptor)):
            owner = found[1]
            if not shared_with or owner in shared_with:
                break
        sleep(0.05)
    return owner


def _read(descriptor: int) -> str:
    return os.pread(descriptor, 1000, 0).decode(errors="replace")


def this_process() -> str:
    """This process in words, as the lock file names its owner."""
    return f"process {os.getpid()} on {os.uname().nodename or 'this machine'}"


def _in_use(folder: str, owner: str) -> DatasetError:
    directory = storage.parent(folder)
    return DatasetError(
        f"{directory}: another run ({owner}) is writing here; wait for its end, or choose another directory"
    )
