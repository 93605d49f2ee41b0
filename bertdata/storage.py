"""Files on any file system: local paths directly, everything with a scheme through fsspec.

fsspec is imported only for a path that needs it: its import takes longer than a small part takes to
prepare. Every function turns a refusal of the file system into an error that names the path.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from glob import glob
from pathlib import Path
from typing import Any, BinaryIO, cast

from bertdata.errors import MissingInputError, StorageError


def is_remote(path: str) -> bool:
    """Whether the path names a file system other than the local one (``gs://``, ``s3://``, ``memory://``)."""
    return "://" in path and not path.startswith("file://")


def _local(path: str) -> str:
    return path.removeprefix("file://")


def _remote(path: str) -> tuple[Any, str]:
    """fsspec's file system for the path, and the path within it."""
    import fsspec

    try:
        file_system, inner = fsspec.core.url_to_fs(path)
    except (ValueError, ImportError) as error:
        raise MissingInputError(f"{path}: {error}") from None
    return file_system, inner


@contextmanager
def _naming(path: str, missing: str = "no such file or directory") -> Iterator[None]:
    """Turn what the file system raises into an error that names the path."""
    try:
        yield
    except FileNotFoundError:
        raise MissingInputError(f"{path}: {missing}") from None
    except IsADirectoryError:
        raise MissingInputError(f"{path}: is a directory, expected a file") from None
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror or error}") from error


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
    with open_input(path) as file, _naming(path):
        return file.read()


@contextmanager
def open_input(path: str) -> Iterator[BinaryIO]:
    """The file opened for reading and seeking."""
    with _naming(path):
        if is_remote(path):
            file_system, inner = _remote(path)
            file = cast(BinaryIO, file_system.open(inner, "rb"))
        else:
            file = open(_local(path), "rb")  # noqa: SIM115 - closed below
    with file:
        yield file


@contextmanager
def open_output(path: str, *, temporary: str | None = None) -> Iterator[BinaryIO]:
    """A file that appears under its path when the block ends well, and not at all otherwise.

    It grows under a name of its own in the directory ``temporary`` (default: beside the path), which
    must be on the same file system, and is renamed at the end.
    """
    directory = temporary if temporary is not None else parent(path)
    growing = join(directory, f"{base_name(path)}.{os.urandom(8).hex()}.tmp")
    try:
        with _naming(path, missing=f"cannot be written: there is no directory {directory}"):
            file = _create(growing)
        with _NamedFile(file, path) as named:
            yield cast(BinaryIO, named)
        with _naming(path):
            _move(growing, path)
    except BaseException:
        remove(growing, missing_ok=True)
        raise


class _NamedFile:
    """An output file whose errors name its path; a full disk may show only when it is closed."""

    def __init__(self, file: BinaryIO, path: str) -> None:
        self._file = file
        self._path = path

    def write(self, data: bytes) -> int:
        with _naming(self._path):
            return self._file.write(data)

    def __enter__(self) -> "_NamedFile":
        return self

    def __exit__(self, *failure: object) -> None:
        with _naming(self._path):
            self._file.close()


def _create(path: str) -> BinaryIO:
    if is_remote(path):
        file_system, inner = _remote(path)
        return cast(BinaryIO, file_system.open(inner, "wb"))
    return open(_local(path), "wb")


def _move(source: str, target: str) -> None:
    if is_remote(source):
        file_system, inner = _remote(source)
        file_system.mv(inner, _remote(target)[1])
    else:
        os.replace(_local(source), _local(target))


def remove(path: str, *, missing_ok: bool = False) -> None:
    """Delete one file."""
    try:
        with _naming(path):
            if is_remote(path):
                file_system, inner = _remote(path)
                file_system.rm_file(inner)
            else:
                os.unlink(_local(path))
    except MissingInputError:
        if not missing_ok:
            raise


def exists(path: str) -> bool:
    """Whether a file or directory of that path is there."""
    if is_remote(path):
        file_system, inner = _remote(path)
        return bool(file_system.exists(inner))
    return os.path.exists(_local(path))


def is_directory(path: str) -> bool:
    """Whether the path is a directory (in an object store: a prefix of files)."""
    if is_remote(path):
        file_system, inner = _remote(path)
        return bool(file_system.isdir(inner))
    return os.path.isdir(_local(path))


def size(path: str) -> int:
    """The file's size in bytes."""
    with _naming(path):
        if is_remote(path):
            file_system, inner = _remote(path)
            return int(file_system.size(inner))
        return os.path.getsize(_local(path))


def make_directory(path: str) -> None:
    """Create the directory and its parents, if they are not there."""
    with _naming(path):
        if is_remote(path):
            file_system, inner = _remote(path)
            file_system.makedirs(inner, exist_ok=True)
        else:
            os.makedirs(_local(path), exist_ok=True)


def remove_directory(path: str) -> None:
    """Delete a directory of plain files, if it is there."""
    if not exists(path):
        return
    for name in list_files(path):
        remove(join(path, name), missing_ok=True)
    with _naming(path):
        if is_remote(path):
            file_system, inner = _remote(path)
            if file_system.exists(inner):
                file_system.rmdir(inner)
        else:
            os.rmdir(_local(path))


def list_files(directory: str) -> list[str]:
    """Names of the files below a directory, relative to it, sorted; none if it is not there."""
    if is_remote(directory):
        file_system, inner = _remote(directory)
        file_system.invalidate_cache()
        found = file_system.find(inner) if file_system.exists(inner) else []
        return sorted(str(path)[len(inner.rstrip("/")) + 1 :] for path in found)
    root = Path(_local(directory))
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


def expand(patterns: list[str]) -> list[str]:
    """Paths that the patterns name, sorted, each once; MissingInputError for one that names none.

    A path that exists is taken as it is, whatever characters it holds.
    """
    paths: set[str] = set()
    for pattern in patterns:
        found = [pattern] if exists(pattern) else _matches(pattern)
        if not found:
            raise MissingInputError(f"{pattern}: no such file")
        paths.update(found)
    return sorted(paths)


def _matches(pattern: str) -> list[str]:
    if is_remote(pattern):
        file_system, inner = _remote(pattern)
        scheme = pattern.split("://")[0]
        return [f"{scheme}://{path.lstrip('/')}" for path in file_system.glob(inner)]
    return glob(_local(pattern))
