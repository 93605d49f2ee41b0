"""A lock that lets only one run at a time write to an output directory.

It is an advisory POSIX record lock (``fcntl.lockf``) on ``unfinished/run.lock``. The operating system
releases it when the process ends, even by a kill or a crash, so a stale lock never blocks a later run. Forked
workers do not inherit the lock: they cannot keep it after the launcher is gone, and cannot release it when
they end.

On a shared file system the lock also works between machines, if the file system supports it. Where it does
not, and in object stores, nothing is locked.
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
from bertdata.io.made_directories import list_missing_directories, remove_empty_directories

LOCK_NAME = "run.lock"

_OWNER = r"bertdata: (process \d+ on \S+)\n"
_TAKEN = {errno.EAGAIN, errno.EACCES}
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
_ATTEMPTS = 100
_READS = 20

_held: set[tuple[int, str]] = set()
"""(process id, lock path) of the locks held by this process.

POSIX would let the same process lock the file again, and closing either descriptor would release both locks.
So this set is used to refuse a second lock by the same process.
"""


@contextmanager
def lock_directory(folder: str, shared_with: Collection[str] = ()) -> Iterator[None]:
    """Hold the lock of an output directory during the block. Raises DatasetError if another run holds it.

    At the end of the block the lock file is removed. Directories that this call had to create are then
    removed too, if they are empty.

    folder: path of the sub-directory ``unfinished/``, which holds the lock file. It is created if it is
        missing.
    shared_with: names (see ``name_this_process``) of other processes of the same run. If one of them holds
        the lock, the block runs without locking, since that process protects the directory already.
    """
    if storage.is_remote(folder):
        yield
        return
    path = os.path.join(os.path.realpath(folder.removeprefix("file://")), LOCK_NAME)
    key = os.getpid(), path
    if key in _held:
        raise _make_in_use_error(folder, name_this_process())
    missing = list_missing_directories(os.path.dirname(os.path.dirname(path)))
    descriptor = _acquire_lock(folder, path, shared_with)
    if descriptor is None:
        yield
        return
    _held.add(key)
    try:
        yield
    finally:
        # Remove the file while the lock is still held. After the release another run could already have
        # locked this file, and removing it then would let a third run lock a new file of the same name. So
        # remove it only if the path still leads to the file that this process has locked.
        with suppress(OSError):
            if os.path.samestat(os.fstat(descriptor), os.lstat(path)):
                os.unlink(path)
        _held.discard(key)
        os.close(descriptor)
        with suppress(OSError):  # the directory is not empty
            os.rmdir(os.path.dirname(path))
            remove_empty_directories(missing)


def remove_stale_lock(folder: str) -> None:
    """Remove the lock file that a killed run left, and its folder if that is then empty.

    A lock held by a running process stays.
    """
    if storage.exists(storage.join(folder, LOCK_NAME)):
        with suppress(DatasetError, StorageError), lock_directory(folder):
            pass


def _acquire_lock(folder: str, path: str, shared_with: Collection[str]) -> int | None:
    """Lock the file and return its open descriptor.

    Returns None if a process in ``shared_with`` (other processes of the same run) holds the lock. Raises
    DatasetError if any other process holds it.
    """
    # A run that is just ending removes the lock file and then the folder. That may happen between any two
    # lines below, so try again until the file that is locked is the file at the path.
    for _ in range(_ATTEMPTS):
        try:
            with suppress(FileExistsError):
                os.makedirs(os.path.dirname(path))
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StorageError(f"{path}: {error.strerror}") from None
        try:
            if (owner := _try_lock(path, descriptor, shared_with)) is not None:
                if owner not in shared_with:
                    raise _make_in_use_error(folder, owner)
                os.close(descriptor)
                return None
            # Suppose that this run opens file A, another run removes A, and this run then locks A. A third
            # run would create a file B at the path and lock it too. So the lock only counts if the locked
            # file is still at the path.
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


def _try_lock(path: str, descriptor: int, shared_with: Collection[str]) -> str | None:
    """Try to lock the file once.

    Returns None if this process now holds the lock, otherwise the name of the process that holds it. Also
    returns None if the file system has no locks.
    """
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise DatasetError(f"{path}: is no lock of ours; remove it")
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _TAKEN:
            return _read_owner(descriptor, shared_with)
        if error.errno not in _NO_LOCKS:
            raise StorageError(f"{path}: {error.strerror}") from None
    return None


def _write_owner(path: str, descriptor: int) -> None:
    """Write this process's name into the lock file, where other runs read it for their error message."""
    text = _read_text(descriptor).strip("\0")  # after a power cut the file may hold zeros
    if text and not re.match(_OWNER, text):
        raise DatasetError(f"{path}: is no lock of ours; remove it")
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"bertdata: {name_this_process()}\n".encode(), 0)
    except OSError as error:  # for example a full disk
        raise StorageError(f"{path}: {error.strerror}") from None


def _read_owner(descriptor: int, shared_with: Collection[str]) -> str:
    """Return the name of the process that holds the lock, read from the lock file.

    The process that gets the lock writes its name into the file a moment later. Until then the file may be
    empty, or may still hold the name of a killed run. So the file is read again for about a second, until it
    holds a name. If ``shared_with`` is not empty, the file is read again until it holds a name in
    ``shared_with``.
    """
    owner = "process unknown"
    for _ in range(_READS):
        if found := re.match(_OWNER, _read_text(descriptor)):
            owner = found[1]
            if not shared_with or owner in shared_with:
                break
        sleep(0.05)
    return owner


def _read_text(descriptor: int) -> str:
    """Return the lock file's contents."""
    return os.pread(descriptor, 1000, 0).decode(errors="replace")


def name_this_process() -> str:
    """Return the name by which the lock file identifies this process: ``process 123 on host``."""
    return f"process {os.getpid()} on {os.uname().nodename or 'this machine'}"


def _make_in_use_error(folder: str, owner: str) -> DatasetError:
    """Return the error for a directory that another run is writing to."""
    directory = storage.get_parent(folder)
    return DatasetError(
        f"{directory}: another run ({owner}) is writing here; wait for its end, or choose another directory"
    )
