"""Files on any file system: local paths directly, everything with a scheme through fsspec.

Every function turns a refusal of the file system into an error that names the path.
"""

import io
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, TypeVar, cast

from bertdata.errors import BertDataError, MissingInputError, StorageError
from bertdata.io.remote import is_object_store, missing_bucket, open_file_system, reason, upload

Result = TypeVar("Result")

_BUFFER_BYTES = 1 << 20
_GROWING_NAME = r"[^/]+\.[0-9a-f]{16}\.tmp"
_REQUESTS = 16
"""Small requests to a remote file system that are under way at a time: each waits for the network."""


def is_remote(path: str) -> bool:
    """True for a path on a file system other than the local one (``gs://``, ``s3://``, ``memory://``)."""
    return "://" in path and not path.startswith("file://")


def _local(path: str) -> str:
    return path.removeprefix("file://")


@contextmanager
def naming(path: str, missing: str = "no such file or directory") -> Iterator[None]:
    """Turn what the file system raises into an error that names the path."""
    try:
        yield
    except BertDataError:
        raise
    except FileNotFoundError:
        bucket = missing_bucket(path)
        what = missing if bucket is None else f"there is no bucket {bucket}"
        raise MissingInputError(f"{path}: {what}") from None
    except IsADirectoryError:
        raise MissingInputError(f"{path}: is a directory, expected a file") from None
    except OSError as error:
        raise StorageError(
            f"{path}: {reason(error) if is_remote(path) else error.strerror or error}"
        ) from error
    except Exception as error:
        if not is_remote(path):
            raise
        raise StorageError(f"{path}: {reason(error)}") from error


def join(directory: str, name: str) -> str:
    """The path of a file in a directory."""
    return f"{directory}{name}" if directory.endswith("/") or not directory else f"{directory}/{name}"


def parent(path: str) -> str:
    """The directory that holds the path."""
    name = base_name(path)
    directory = path.rstrip("/")[: -len(name)]
    at_root = directory == "/" or directory.endswith("://")
    return directory if at_root else directory.rstrip("/") or "."


def base_name(path: str) -> str:
    """The path's last component."""
    return path.rstrip("/").rsplit("/", 1)[-1]


def read_bytes(path: str) -> bytes:
    """The whole file."""
    if is_remote(path):
        with naming(path):
            file_system, inner = open_file_system(path)
            data: bytes = file_system.cat_file(inner)
            return data
    with open_input(path) as file, naming(path):
        return file.read()


@contextmanager
def open_input(path: str) -> Iterator[BinaryIO]:
    """The file opened for reading and seeking."""
    with naming(path):
        if is_remote(path):
            file_system, inner = open_file_system(path)
            file = cast(
                BinaryIO, io.BufferedReader(_RemoteInput(file_system.open(inner, "rb"), path), _BUFFER_BYTES)
            )
        else:
            _refuse_special(path)
            file = open(_local(path), "rb")  # noqa: SIM115 - closed below
    with file:
        yield file


def _refuse_special(path: str) -> None:
    """MissingInputError for what is no file: a pipe may wait for ever, a device may never end."""
    mode = os.stat(_local(path)).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        kinds = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
        raise MissingInputError(f"{path}: is {kinds.get(stat.S_IFMT(mode), 'a device')}, expected a file")


class _RemoteInput(io.RawIOBase):
    """A remote file whose read errors name its path."""

    def __init__(self, file: Any, path: str) -> None:
        self._file = file
        self._path = path

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def readinto(self, buffer: Any) -> int:
        with naming(self._path):
            data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


@contextmanager
def open_output(path: str, *, temporary: str | None = None) -> Iterator[BinaryIO]:
    """A file that appears under its path when the block ends well, and not at all otherwise.

    A local one grows under a name of its own in the directory ``temporary`` (default: beside the
    path), which must be on the same file system, and is renamed at the end. A remote one grows in a
    nameless file of this machine (TMPDIR) and is sent when it is whole: nothing that a crash, a
    second writer or a file object's finaliser does can put half of it there.
    """
    directory = temporary if temporary is not None else parent(path)
    growing = join(directory, growing_name(base_name(path)))
    if is_remote(path):
        with _open_remote_output(path, growing) as file:
            yield file
        return
    try:
        with naming(path, missing=f"cannot be written: there is no directory {directory}"):
            file = _create(growing)
        with _NamedOutput(file, path) as named:
            yield cast(BinaryIO, named)
        with naming(path):
            os.replace(_local(growing), _local(path))
    except BaseException:
        remove(growing, missing_ok=True)
        raise


def growing_name(name: str) -> str:
    """A name of its own for a file or directory that is being written."""
    return f"{name}.{os.urandom(8).hex()}.tmp"


def is_growing_name(name: str) -> bool:
    """True for a name as growing_name makes them."""
    return name.endswith(".tmp") and re.fullmatch(_GROWING_NAME, name) is not None


def _create(path: str) -> BinaryIO:
    return open(_local(path), "wb")


@contextmanager
def _open_remote_output(path: str, growing: str) -> Iterator[BinaryIO]:
    from tempfile import TemporaryFile, gettempdir

    with naming(path):
        open_file_system(path)  # what cannot be written is not worth making
    try:
        made = TemporaryFile()  # noqa: SIM115 - closed below
    except OSError as error:
        raise StorageError(f"{path}: no room here for it to grow: {error}; set TMPDIR") from None
    with made as file:
        with _NamedOutput(cast(BinaryIO, file), f"{path}: its copy in {gettempdir()}", closes=False) as named:
            yield cast(BinaryIO, named)
        with naming(path, missing="cannot be written"):
            upload(cast(BinaryIO, file), path, growing)


class _NamedOutput:
    """An output file whose errors name its path. A full disk may show only when it is closed or flushed."""

    def __init__(self, file: BinaryIO, path: str, *, closes: bool = True) -> None:
        self._file = file
        self._path = path
        self._end = file.close if closes else file.flush

    def write(self, data: bytes) -> int:
        with naming(self._path):
            return self._file.write(data)

    def flush(self) -> None:
        with naming(self._path):
            self._file.flush()

    def __enter__(self) -> "_NamedOutput":
        return self

    def __exit__(self, *failure: object) -> None:
        with naming(self._path):
            self._end()


def remove(path: str, *, missing_ok: bool = False) -> None:
    """Delete one file."""
    try:
        with naming(path):
            if is_remote(path):
                file_system, inner = open_file_system(path)
                file_system.rm_file(inner)
            else:
                os.unlink(_local(path))
    except MissingInputError:
        if not missing_ok:
            raise


def exists(path: str) -> bool:
    """True if a file or directory of that path exists."""
    return _kind(path) is not None if is_remote(path) else os.path.exists(_local(path))


def is_directory(path: str) -> bool:
    """True for a directory (in an object store: a prefix of files)."""
    return _kind(path) == "directory" if is_remote(path) else os.path.isdir(_local(path))


def _kind(path: str) -> str | None:
    """``file`` or ``directory``. None if nothing of that path is there."""
    with naming(path):
        file_system, inner = open_file_system(path)
        try:
            return str(file_system.info(inner)["type"])
        except FileNotFoundError:
            return None


def is_link(path: str) -> bool:
    """True for a symbolic link of the local file system."""
    return not is_remote(path) and os.path.islink(_local(path))


def size(path: str) -> int:
    """The file's size in bytes."""
    with naming(path):
        if is_remote(path):
            file_system, inner = open_file_system(path)
            return int(file_system.size(inner))
        _refuse_special(path)
        return os.path.getsize(_local(path))


def version(path: str) -> tuple[int, ...]:
    """Numbers that differ once a local file was changed or replaced. The same for every remote file."""
    if is_remote(path):
        return ()
    with naming(path):
        found = os.stat(_local(path))
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def status(path: str) -> os.stat_result:
    """Return a local file's status (``os.stat``)."""
    with naming(path):
        _refuse_special(path)
        return os.stat(_local(path))


def remote_facts(path: str) -> dict[str, Any]:
    """Return the remote file system's facts about a file, not from its cache: size, marks of the contents."""
    with naming(path):
        file_system, inner = open_file_system(path)
        file_system.invalidate_cache(inner)
        return dict(file_system.info(inner))


def make_directory(path: str) -> None:
    """Create the directory and its parents, if they are not there. An object store has none."""
    if is_object_store(path):
        return  # fsspec would create the bucket
    with naming(path):
        if is_remote(path):
            file_system, inner = open_file_system(path)
            file_system.makedirs(inner, exist_ok=True)
        else:
            os.makedirs(_local(path), exist_ok=True)


def remove_directory(path: str, *, only: Callable[[str], bool] = lambda name: True) -> None:
    """Delete a directory of plain files, if it is there.

    only: decides by its name whether a file may be deleted; where one may not, the directory stays.
    """
    if not is_object_store(path) and not exists(path):
        return
    names = list_files(path)
    mine = [name for name in names if only(name)]
    each([join(path, name) for name in mine], lambda file: remove(file, missing_ok=True))
    if is_object_store(path) or len(mine) < len(names):
        return
    with naming(path):
        if is_remote(path):
            file_system, inner = open_file_system(path)
            if file_system.exists(inner):
                file_system.rmdir(inner)
        else:
            os.rmdir(_local(path))


def each(paths: Sequence[str], function: Callable[[str], Result]) -> list[Result]:
    """``function(path)`` of every path. Of remote ones several at a time."""
    if not any(map(is_remote, paths)):
        return [function(path) for path in paths]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_REQUESTS) as pool:
        return list(pool.map(function, paths))


def list_files(directory: str) -> list[str]:
    """Names of the files below a directory, relative to it, sorted. None if it is not there."""
    if is_remote(directory):
        with naming(directory):
            file_system, inner = open_file_system(directory)
            file_system.invalidate_cache()
            there = is_object_store(directory) or file_system.exists(inner)
            found = file_system.find(inner) if there else []
        names = [str(path)[len(inner.rstrip("/")) + 1 :] for path in found]
        return sorted(name for name in names if name and not name.endswith("/"))  # marks of empty folders
    root = _local(directory)
    found = []
    for folder, _, names in os.walk(root):  # a folder that another process removes meanwhile is passed over
        paths = [os.path.join(folder, name) for name in names]
        found += [os.path.relpath(path, root).replace(os.sep, "/") for path in paths if os.path.isfile(path)]
    return sorted(found)
