"""Resumable downloads of published files, which are accepted only with the published digest."""

import fcntl
import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from bertdata.errors import AssetError, StorageError

PART_ENDING = ".part"
"""Ending of a file's name while its download is incomplete."""

_ALGORITHMS = {32: "md5", 40: "sha1", 64: "sha256"}
_CHUNK_BYTES = 1 << 20
_SECONDS = 30
_MOST_FAILURES = 5
"""Number of failures in a row, each with fewer than _PROGRESS_BYTES new bytes, after which a download gives
up.
"""
_PROGRESS_BYTES = 1 << 16
"""A connection must add at least this many bytes to the file to reset the count of failures."""

OnBytes = Callable[[int, int], None]
"""Progress callback. It gets the number of bytes received so far and the size of the whole file."""


@dataclass(frozen=True, slots=True)
class Download:
    """A file to download.

    url: where the server has it.
    path: where to store it.
    digest: the published md5, SHA-1 or SHA-256 in hexadecimal. Its length shows which of the three it is.
    """

    url: str
    path: Path
    digest: str

    @property
    def part(self) -> Path:
        """Path of the file while its download is incomplete."""
        return self.path.with_name(self.path.name + PART_ENDING)


def download_file(wanted: Download, progress: OnBytes, sleep: Callable[[float], None] = time.sleep) -> bool:
    """Download the file unless it exists. Returns False if it was already there.

    The bytes go to ``NAME.part``, which gets its final name only when its digest is right. An interrupted
    download continues where it stopped, or from the beginning if the server cannot continue. A broken
    connection is tried again with growing pauses, as long as new bytes keep arriving.

    Raises AssetError if the file cannot be downloaded or has a different digest.

    progress: called with the number of bytes received.
    sleep: function that waits for a number of seconds. Tests replace it.
    """
    if wanted.path.exists():
        _check_digest(
            wanted, wanted.path, _hash_file(wanted, wanted.path), f"remove {wanted.path} and run again"
        )
        return False
    wanted.path.parent.mkdir(parents=True, exist_ok=True)
    with _open_part(wanted.part) as file:
        digest = _hash_file(wanted, wanted.part)
        failures = 0
        furthest = file.tell()
        while True:
            try:
                _receive_missing_bytes(wanted, file, digest, progress)
                break
            except _Restart:  # drop what came before; the digest starts again too
                file.seek(0)
                file.truncate()
                digest = hashlib.new(digest.name, usedforsecurity=False)
            except _list_network_errors() as error:
                # Progress counts only beyond the furthest byte so far. Otherwise a server that always
                # restarts and breaks at the same place would be asked forever.
                is_worth_it = file.tell() >= furthest + _PROGRESS_BYTES
                furthest = max(furthest, file.tell())
                failures = 0 if is_worth_it else failures + 1
                if failures == _MOST_FAILURES or _is_permanent_error(error):
                    raise AssetError(
                        f"{wanted.url}: {_describe_error(error)}{_describe_kept_bytes(file)}"
                    ) from error
                sleep(2.0 ** min(failures, _MOST_FAILURES))
        try:
            _check_digest(wanted, wanted.url, digest, "run the command again; what came was removed")
        except AssetError:
            wanted.part.unlink()
            raise
        # Without fsync, a power cut after the rename could leave an empty file under the final name.
        os.fsync(file.fileno())
        os.replace(wanted.part, wanted.path)
    return True


class _Restart(Exception):
    """Raised when the server sends the file from its beginning instead of continuing the partial download."""


def _list_network_errors() -> tuple[type[Exception], ...]:
    """Return the exception classes that urllib raises for network failures."""
    from http.client import HTTPException  # imported here because it is slow to import

    return (OSError, HTTPException, ValueError)  # ValueError: the URL is not valid


@contextmanager
def _open_part(path: Path) -> Iterator[BinaryIO]:
    """Open the partial file for appending, locked against other processes that download the same file."""
    try:
        with open(path, "ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise AssetError(f"{path}: another process is downloading this file") from None
            yield file
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror or error}") from error


def _receive_missing_bytes(wanted: Download, file: BinaryIO, digest: Any, progress: OnBytes) -> None:
    """Request the missing bytes and append them to the partial file.

    Raises ConnectionError if the connection ends early, _Restart if the server sends bytes from another
    position.
    """
    from urllib.request import Request, urlopen

    here = file.tell()
    request = Request(wanted.url, headers={"Range": f"bytes={here}-"} if here else {})
    try:
        answer = urlopen(request, timeout=_SECONDS)
    except OSError as error:
        # 416: no bytes after the end of the partial file. Either it is complete, or it is a different file.
        # The caller's digest check decides.
        if getattr(error, "code", None) == 416:
            return
        raise
    with answer:
        begins = answer.headers.get("Content-Range", "").startswith(f"bytes {here}-")
        if here and not (answer.status == 206 and begins):
            raise _Restart
        total = here + _parse_length(answer.headers.get("Content-Length"))
        _check_disk_space(wanted.part, total - here)
        progress(here, total)
        while chunk := answer.read(_CHUNK_BYTES):
            _append_chunk(file, chunk, wanted.part)
            digest.update(chunk)
            progress(file.tell(), total)
    if file.tell() < total:
        raise ConnectionError(f"the connection ended at byte {file.tell():,} of {total:,}")


def _parse_length(header: str | None) -> int:
    """Return the size in a Content-Length header, 0 if the header is missing or not a number."""
    known = re.fullmatch(r"[0-9]{1,18}", (header or "").strip())
    return int(known[0]) if known else 0


def _append_chunk(file: BinaryIO, chunk: bytes, path: Path) -> None:
    """Append bytes to the partial file.

    A full disk raises StorageError, because a retry, as after a network error, would not help.
    """
    try:
        file.write(chunk)
        file.flush()
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror or error}") from error


def _check_disk_space(path: Path, needed: int) -> None:
    """Raise StorageError if the disk has fewer than ``needed`` free bytes."""
    free = shutil.disk_usage(path.parent).free
    if needed > free:
        raise StorageError(f"{path}: {needed:,} bytes are to come, the disk has room for {free:,}")


def _hash_file(wanted: Download, path: Path) -> Any:
    """Return a hashlib object that has hashed the file's contents."""
    digest = hashlib.new(_ALGORITHMS[len(wanted.digest)], usedforsecurity=False)
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest


def _check_digest(wanted: Download, where: object, digest: Any, remedy: str) -> None:
    """Raise AssetError if the digest is not the published one."""
    if (found := digest.hexdigest()) != wanted.digest:
        raise AssetError(f"{where}: {digest.name} {found}, published is {wanted.digest}; {remedy}")


def _is_permanent_error(error: Exception) -> bool:
    """Return True if another attempt cannot help: the URL is invalid or the server answered 4xx."""
    return isinstance(error, ValueError) or 400 <= getattr(error, "code", 0) < 500


def _describe_error(error: Exception) -> str:
    """Return words for an error: the server's HTTP status, or the message of the error that urllib has
    wrapped.
    """
    inner = getattr(error, "reason", None)
    code = getattr(error, "code", None)
    return f"the server answers {code} {inner}" if code else str(inner or error) or type(error).__name__


def _describe_kept_bytes(file: BinaryIO) -> str:
    """Return the end of an error message: how many bytes are kept for the next attempt.

    The result is empty if there are none.
    """
    return f"; {file.tell():,} bytes are kept, run the same command to go on" if file.tell() else ""
