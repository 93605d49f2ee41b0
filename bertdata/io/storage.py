"""File operations on any file system. Local paths use the standard library, URLs use fsspec.

Errors of the file system are raised as StorageError or MissingInputError, with the path in the message.
"""

import errno
import io
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, TypeVar, cast

from bertdata.errors import BertDataError, MissingInputError, StorageError
from bertdata.io.remote import (
    create_file_once,
    describe_error,
    find_missing_bucket,
    is_object_store,
    open_file_system,
    upload_file,
)

Result = TypeVar("Result")

_BUFFER_BYTES = 1 << 20
_CANNOT_FLUSH = (errno.EINVAL, errno.ENOTSUP)
"""Error numbers of file systems that have no fsync."""
_GROWING_NAME = r"[^/]+\.[0-9a-f]{16}\.tmp"
_REQUESTS = 16
"""Number of small remote requests that run at the same time. Most of their time is spent waiting."""


def is_remote(path: str) -> bool:
    """Return True for a URL other than ``file://``, such as ``gs://``, ``s3://`` or ``memory://``."""
    return "://" in path and not path.startswith("file://")


def _strip_scheme(path: str) -> str:
    """Return the local path without ``file://``."""
    return path.removeprefix("file://")


EMPTY = "'' (an empty name)"
"""Text that stands for an empty path in error messages."""


@contextmanager
def name_path_in_errors(path: str, missing: str = "no such file or directory") -> Iterator[None]:
    """Turn the file system's exceptions in the block into MissingInputError or StorageError, with the path.

    path: path for the message.
    missing: words of the message if the file does not exist.
    """
    try:
        yield
    except BertDataError:
        raise
    except FileNotFoundError:
        bucket = find_missing_bucket(path)
        what = missing if bucket is None else f"there is no bucket {bucket}"
        raise MissingInputError(f"{path or EMPTY}: {what}") from None
    except IsADirectoryError:
        raise MissingInputError(f"{path}: is a directory, expected a file") from None
    except OSError as error:
        raise StorageError(
            f"{path}: {describe_error(error) if is_remote(path) else error.strerror or error}"
        ) from error
    except Exception as error:
        if not is_remote(path):
            raise
        raise StorageError(f"{path}: {describe_error(error)}") from error


def join(directory: str, name: str) -> str:
    """Return the path of a file in a directory."""
    return f"{directory}{name}" if directory.endswith("/") or not directory else f"{directory}/{name}"


def get_parent(path: str) -> str:
    """Return the directory that contains the path."""
    name = get_base_name(path)
    directory = path.rstrip("/")[: -len(name)]
    at_root = directory == "/" or directory.endswith("://")
    return directory if at_root else directory.rstrip("/") or "."


def get_base_name(path: str) -> str:
    """Return the last component of the path."""
    return path.rstrip("/").rsplit("/", 1)[-1]


def read_bytes(path: str) -> bytes:
    """Return the contents of a file."""
    if is_remote(path):
        with name_path_in_errors(path):
            file_system, inner = open_file_system(path)
            data: bytes = file_system.cat_file(inner)
            return data
    with open_input(path) as file, name_path_in_errors(path):
        return file.read()


def read_if_present(path: str) -> bytes | None:
    """Return the contents of a file, or None if the file does not exist."""
    try:
        return read_bytes(path)
    except MissingInputError:
        return None


@contextmanager
def open_input(path: str) -> Iterator[BinaryIO]:
    """Open a file for reading and seeking."""
    with name_path_in_errors(path):
        if is_remote(path):
            file_system, inner = open_file_system(path)
            file = cast(
                BinaryIO, io.BufferedReader(_RemoteInput(file_system.open(inner, "rb"), path), _BUFFER_BYTES)
            )
        else:
            _refuse_special(path)
            file = open(_strip_scheme(path), "rb")  # noqa: SIM115 - closed below
    with file:
        yield file


def _refuse_special(path: str) -> None:
    """Raise MissingInputError for a pipe, socket or device, because reading it could wait forever or never
    end.
    """
    mode = os.stat(_strip_scheme(path)).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        kinds = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
        raise MissingInputError(f"{path}: is {kinds.get(stat.S_IFMT(mode), 'a device')}, expected a file")


class _RemoteInput(io.RawIOBase):
    """A remote file opened for reading. Its errors name its path."""

    def __init__(self, file: Any, path: str) -> None:
        self._file = file
        self._path = path

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a position in the file. The arguments are those of ``io.IOBase.seek``."""
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def readinto(self, buffer: Any) -> int:
        with name_path_in_errors(self._path):
            data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


@contextmanager
def open_output(path: str, *, temporary: str | None = None, flushes: bool = True) -> Iterator[BinaryIO]:
    """Open an output file that appears under its path only if the block ends without an error.

    A local file is written under a temporary name and renamed at the end. A remote file is first written to a
    nameless temporary file on this machine (in TMPDIR) and uploaded when it is complete. So neither a crash
    nor a power cut nor a second writer of the same path can leave half a file there.

    temporary: directory for the file under its temporary name, on the same file system. None: the path's
        directory.
    flushes: force a local file to disk before it is renamed. False for the files of which there may be
        thousands: those that no later run reads, and those that the caller flushes or checks later.
    """
    directory = temporary if temporary is not None else get_parent(path)
    # The temporary name is random, so that two processes that write the same path never share a temporary
    # file. The process that renames its file last wins, with a complete file.
    growing = join(directory, make_growing_name(get_base_name(path)))
    if is_remote(path):
        with _open_remote_output(path, growing) as file:
            yield file
        return
    try:
        with name_path_in_errors(path, missing=f"cannot be written: there is no directory {directory}"):
            file = _create(growing)
        with _NamedOutput(file, path) as named:
            yield cast(BinaryIO, named)
        # A file system may record a file's new name long before it writes the file's contents. After a power
        # cut the new name would then lead to an empty file, and the old contents would be lost.
        if flushes:
            flush_file(growing, path)
        # A crash before this line leaves a *.tmp file and the old contents of the path. os.replace is atomic,
        # so readers see either the old file or the whole new file.
        with name_path_in_errors(path):
            os.replace(_strip_scheme(growing), _strip_scheme(path))
        if flushes:
            flush_directory(get_parent(path))
    except BaseException:
        remove(growing, missing_ok=True)
        raise


def flush_file(path: str, name: str | None = None) -> None:
    """Force a local file's contents to disk (fsync), whichever process has written them.

    Does nothing for a remote file, which its store keeps as soon as the upload has ended.

    name: path for the error message. None: the path.
    """
    if is_remote(path):
        return
    with name_path_in_errors(name or path):
        descriptor = os.open(_strip_scheme(path), os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in _CANNOT_FLUSH:
                raise
        finally:
            os.close(descriptor)


def flush_directory(directory: str) -> None:
    """Force a local directory's list of names to disk (fsync), so that a power cut undoes no renaming there.

    Does nothing for a remote directory, and where the file system or the rights do not allow it.
    """
    with suppress(StorageError, MissingInputError):
        flush_file(directory)


def flush_directories(directory: str) -> None:
    """Force the names in a local directory to disk, and the names of all directories that lead to it."""
    if is_remote(directory):
        return
    path = os.path.abspath(_strip_scheme(directory))
    while path != os.path.dirname(path):
        flush_directory(path)
        path = os.path.dirname(path)


def make_growing_name(name: str) -> str:
    """Return a random temporary name for a file or directory that is being written."""
    return f"{name}.{os.urandom(8).hex()}.tmp"


def is_growing_name(name: str) -> bool:
    """Return True for a name made by ``make_growing_name``."""
    return name.endswith(".tmp") and re.fullmatch(_GROWING_NAME, name) is not None


def _create(path: str) -> BinaryIO:
    """Create a local file for writing."""
    return open(_strip_scheme(path), "wb")


@contextmanager
def _open_remote_output(path: str, growing: str) -> Iterator[BinaryIO]:
    """Open a local temporary file that is uploaded to the remote path at the end of the block."""
    from tempfile import TemporaryFile, gettempdir

    with name_path_in_errors(path):
        open_file_system(path)  # fail now for a missing package, not after the work is done
    try:
        made = TemporaryFile()  # noqa: SIM115 - closed below
    except OSError as error:
        raise StorageError(f"{path}: no room here for it to grow: {error}; set TMPDIR") from None
    with made as file:
        with _NamedOutput(cast(BinaryIO, file), f"{path}: its copy in {gettempdir()}", closes=False) as named:
            yield cast(BinaryIO, named)
        with name_path_in_errors(path, missing="cannot be written"):
            upload_file(cast(BinaryIO, file), path, growing)


def upload_copy(source: str, path: str) -> None:
    """Copy a local file to a remote path, where it appears whole or not at all.

    Unlike ``open_output`` this makes no second copy on this machine, so the file must not change meanwhile.
    """
    growing = join(get_parent(path), make_growing_name(get_base_name(path)))
    with open_input(source) as file, name_path_in_errors(path, missing="cannot be written"):
        upload_file(file, path, growing)


def download_copy(path: str, target: str) -> None:
    """Copy a remote file to a local path, where it appears whole or not at all."""
    growing = join(get_parent(target), make_growing_name(get_base_name(target)))
    try:
        with name_path_in_errors(path):
            file_system, inner = open_file_system(path)
            file_system.get_file(inner, growing)
        flush_file(growing, target)
        with name_path_in_errors(target):
            os.replace(growing, target)
    finally:
        with suppress(FileNotFoundError):  # it has been renamed, or was never made
            os.unlink(growing)


def create_remote_file(path: str, data: bytes) -> bool | None:
    """Write a small remote file only if there is none at the path, as one step of the store.

    Returns True if the file was written, and False if there was a file already. If two processes call this at
    the same time, only one of them gets True. Returns None, and writes nothing, if the store has no such
    conditional writes.
    """
    with name_path_in_errors(path, missing="cannot be written"):
        return create_file_once(path, data)


def read_modified_time(path: str) -> float | None:
    """Return when a remote file was last written, in seconds since 1970 by the store's clock.

    Returns None if the store does not say.
    """
    with name_path_in_errors(path):
        file_system, inner = open_file_system(path)
        try:
            return float(file_system.modified(inner).timestamp())
        except (NotImplementedError, AttributeError, KeyError, TypeError):
            return None


class _NamedOutput:
    """An output file whose errors name its path.

    A full disk may show only when the file is flushed or closed, so these errors name the path too.

    closes: False only flushes the file at the end, and leaves it open for the caller to read.
    """

    def __init__(self, file: BinaryIO, path: str, *, closes: bool = True) -> None:
        self._file = file
        self._path = path
        self._end = file.close if closes else file.flush

    def write(self, data: bytes) -> int:
        with name_path_in_errors(self._path):
            return self._file.write(data)

    def flush(self) -> None:
        with name_path_in_errors(self._path):
            self._file.flush()

    def __enter__(self) -> "_NamedOutput":
        return self

    def __exit__(self, *failure: object) -> None:
        with name_path_in_errors(self._path):
            self._end()


def remove(path: str, *, missing_ok: bool = False) -> None:
    """Delete a file.

    missing_ok: do nothing if the file does not exist. Otherwise MissingInputError is raised.
    """
    try:
        with name_path_in_errors(path):
            if is_remote(path):
                file_system, inner = open_file_system(path)
                file_system.rm_file(inner)
            else:
                os.unlink(_strip_scheme(path))
    except MissingInputError:
        if not missing_ok:
            raise


def exists(path: str) -> bool:
    """Return True if the path is an existing file or directory."""
    return _read_type(path) is not None if is_remote(path) else os.path.exists(_strip_scheme(path))


def is_directory(path: str) -> bool:
    """Return True if the path is a directory.

    An object store has no directories. There the path counts as a directory if files lie below it.
    """
    return _read_type(path) == "directory" if is_remote(path) else os.path.isdir(_strip_scheme(path))


def _read_type(path: str) -> str | None:
    """Return ``file`` or ``directory`` for a remote path, or None if it does not exist."""
    with name_path_in_errors(path):
        file_system, inner = open_file_system(path)
        try:
            return str(file_system.info(inner)["type"])
        except FileNotFoundError:
            return None


def is_link(path: str) -> bool:
    """Return True for a symbolic link on the local file system."""
    return not is_remote(path) and os.path.islink(_strip_scheme(path))


def read_size(path: str) -> int:
    """Return the size of a file in bytes."""
    with name_path_in_errors(path):
        if is_remote(path):
            file_system, inner = open_file_system(path)
            return int(file_system.size(inner))
        _refuse_special(path)
        return os.path.getsize(_strip_scheme(path))


def read_version(path: str) -> tuple[int, ...]:
    """Return numbers that change when a local file is modified or replaced, such as its size and times.

    The tuple is empty for a remote file.
    """
    if is_remote(path):
        return ()
    with name_path_in_errors(path):
        found = os.stat(_strip_scheme(path))
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def read_status(path: str) -> os.stat_result:
    """Return ``os.stat`` of a local file."""
    with name_path_in_errors(path):
        _refuse_special(path)
        return os.stat(_strip_scheme(path))


def read_remote_info(path: str) -> dict[str, Any]:
    """Return fsspec's information about a remote file (size, version marks), bypassing the listing cache."""
    with name_path_in_errors(path):
        file_system, inner = open_file_system(path)
        file_system.invalidate_cache(inner)
        return dict(file_system.info(inner))


def make_directory(path: str) -> None:
    """Create a directory and its parents if they do not exist. Does nothing in an object store."""
    if is_object_store(path):
        return  # there are no directories; fsspec would create the bucket instead
    with name_path_in_errors(path):
        if is_remote(path):
            file_system, inner = open_file_system(path)
            file_system.makedirs(inner, exist_ok=True)
        else:
            os.makedirs(_strip_scheme(path), exist_ok=True)


def remove_directory(path: str, *, only: Callable[[str], bool] = lambda name: True) -> None:
    """Delete a directory and the files in it, if it exists.

    only: function that returns True for the name of a file that may be deleted. If another file remains, the
        directory remains too.
    """
    if not is_object_store(path) and not exists(path):
        return
    names = list_files(path)
    mine = [name for name in names if only(name)]
    map_paths([join(path, name) for name in mine], lambda file: remove(file, missing_ok=True))
    if is_object_store(path) or len(mine) < len(names):
        return
    with name_path_in_errors(path):
        if is_remote(path):
            file_system, inner = open_file_system(path)
            if file_system.exists(inner):
                file_system.rmdir(inner)
        else:
            os.rmdir(_strip_scheme(path))


def map_paths(paths: Sequence[str], function: Callable[[str], Result]) -> list[Result]:
    """Return ``function(path)`` for every path. Remote paths are processed several at a time."""
    if not any(map(is_remote, paths)):
        return [function(path) for path in paths]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_REQUESTS) as pool:
        return list(pool.map(function, paths))


def list_files(directory: str) -> list[str]:
    """Return the sorted names of all files below a directory, relative to it.

    The result is empty if it does not exist.
    """
    if is_remote(directory):
        with name_path_in_errors(directory):
            file_system, inner = open_file_system(directory)
            file_system.invalidate_cache()
            there = is_object_store(directory) or file_system.exists(inner)
            found = file_system.find(inner) if there else []
        names = [str(path)[len(inner.rstrip("/")) + 1 :] for path in found]
        # Some tools mark an empty folder in an object store by an empty file whose name ends with a slash.
        return sorted(name for name in names if name and not name.endswith("/"))
    root = _strip_scheme(directory)
    found = []
    for folder, _, names in os.walk(root):  # skips a folder that another process has just removed
        paths = [os.path.join(folder, name) for name in names]
        found += [os.path.relpath(path, root).replace(os.sep, "/") for path in paths if os.path.isfile(path)]
    return sorted(found)
