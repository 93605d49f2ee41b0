"""A published file to a local path: resumed where it stopped, and kept only with the published digest."""

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

PART = ".part"
"""Ending of the name that a file has until it is whole."""

_ALGORITHMS = {32: "md5", 40: "sha1", 64: "sha256"}
_CHUNK_BYTES = 1 << 20
_SECONDS = 30
_PATIENCE = 5
"""Failures, one after another with next to no new bytes between them, after which a download ends."""
_NEW_BYTES = 1 << 16
"""Bytes that a connection must bring, beyond those of all connections before, to count for something."""

OnBytes = Callable[[int, int], None]
"""Called with the bytes that are here by now, and those of the whole file."""


@dataclass(frozen=True, slots=True)
class Download:
    """A file to fetch. digest: hexadecimal, of md5, SHA-1 or SHA-256 by its length."""

    url: str
    path: Path
    digest: str

    @property
    def part(self) -> Path:
        """The path of what has come so far."""
        return self.path.with_name(self.path.name + PART)


def fetch(wanted: Download, progress: OnBytes, sleep: Callable[[float], None] = time.sleep) -> bool:
    """Make the file, and nothing that is not whole under its name. False: it was there already.

    What a stopped run left goes on from there; a server that cannot continue sends all of it again. A
    connection that breaks is tried again, with growing pauses, as long as new bytes arrive in between.
    AssetError for a file that cannot be had or has another digest.
    """
    if wanted.path.exists():
        _check(wanted, wanted.path, _hash_of(wanted, wanted.path), f"remove {wanted.path} and run again")
        return False
    wanted.path.parent.mkdir(parents=True, exist_ok=True)
    with _open_part(wanted.part) as file:
        digest = _hash_of(wanted, wanted.part)
        failures = 0
        furthest = file.tell()
        while True:
            try:
                _receive(wanted, file, digest, progress)
                break
            except _Restart:
                file.seek(0)
                file.truncate()
                digest = hashlib.new(digest.name, usedforsecurity=False)
            except _network_errors() as error:
                is_worth_it = file.tell() >= furthest + _NEW_BYTES
                furthest = max(furthest, file.tell())
                failures = 0 if is_worth_it else failures + 1
                if failures == _PATIENCE or _is_final(error):
                    raise AssetError(f"{wanted.url}: {_reason(error)}{_kept(file)}") from error
                sleep(2.0 ** min(failures, _PATIENCE))
        try:
            _check(wanted, wanted.url, digest, "run the command again; what came was removed")
        except AssetError:
            wanted.part.unlink()
            raise
        os.fsync(file.fileno())
        os.replace(wanted.part, wanted.path)
    return True


class _Restart(Exception):
    """The server does not go on from where the part ends."""


def _network_errors() -> tuple[type[Exception], ...]:
    from http.client import HTTPException  # slow to import, as urllib

    return (OSError, HTTPException, ValueError)  # the last of an address that is none


@contextmanager
def _open_part(path: Path) -> Iterator[BinaryIO]:
    """The part, open at its end, and no other process's at the same time."""
    try:
        with open(path, "ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise AssetError(f"{path}: another process is downloading this file") from None
            yield file
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror or error}") from error


def _receive(wanted: Download, file: BinaryIO, digest: Any, progress: OnBytes) -> None:
    """Append what is missing. Short answers are ConnectionError, other places _Restart."""
    from urllib.request import Request, urlopen

    here = file.tell()
    request = Request(wanted.url, headers={"Range": f"bytes={here}-"} if here else {})
    try:
        answer = urlopen(request, timeout=_SECONDS)
    except OSError as error:
        if getattr(error, "code", None) == 416:  # nothing is behind the part: it is whole, or another file's
            return
        raise
    with answer:
        begins = answer.headers.get("Content-Range", "").startswith(f"bytes {here}-")
        if here and not (answer.status == 206 and begins):
            raise _Restart
        total = here + _length_of(answer.headers.get("Content-Length"))
        _check_room(wanted.part, total - here)
        progress(here, total)
        while chunk := answer.read(_CHUNK_BYTES):
            _write(file, chunk, wanted.part)
            digest.update(chunk)
            progress(file.tell(), total)
    if file.tell() < total:
        raise ConnectionError(f"the connection ended at byte {file.tell():,} of {total:,}")


def _length_of(header: str | None) -> int:
    """Return the bytes that a server promises, 0 where it says nothing that is a number."""
    known = re.fullmatch(r"[0-9]{1,18}", (header or "").strip())
    return int(known[0]) if known else 0


def _write(file: BinaryIO, chunk: bytes, path: Path) -> None:
    """Append to the part. Its errors are not the network's."""
    try:
        file.write(chunk)
        file.flush()
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror or error}") from error


def _check_room(path: Path, needed: int) -> None:
    free = shutil.disk_usage(path.parent).free
    if needed > free:
        raise StorageError(f"{path}: {needed:,} bytes are to come, the disk has room for {free:,}")


def _hash_of(wanted: Download, path: Path) -> Any:
    """The running digest of what the file holds."""
    digest = hashlib.new(_ALGORITHMS[len(wanted.digest)], usedforsecurity=False)
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest


def _check(wanted: Download, where: object, digest: Any, remedy: str) -> None:
    if (found := digest.hexdigest()) != wanted.digest:
        raise AssetError(f"{where}: {digest.name} {found}, published is {wanted.digest}; {remedy}")


def _is_final(error: Exception) -> bool:
    """True for an answer that another try would not change."""
    return isinstance(error, ValueError) or 400 <= getattr(error, "code", 0) < 500


def _reason(error: Exception) -> str:
    """The error's own words, or those of the error that urllib wraps."""
    inner = getattr(error, "reason", None)
    code = getattr(error, "code", None)
    return f"the server answers {code} {inner}" if code else str(inner or error) or type(error).__name__


def _kept(file: BinaryIO) -> str:
    return f"; {file.tell():,} bytes are kept, run the same command to go on" if file.tell() else ""
