"""A stand-in for a slow object store: ``slow:///DIRECTORY`` has the files of a local directory.

Each opened file waits like a request to a store, and each read like a transfer. A store may fail some of its
requests. What is read is written to a log, which many processes may share.
"""

import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import fsspec
from fsspec.implementations.local import LocalFileSystem

SCHEME = "slow"


class SlowStore(LocalFileSystem):  # type: ignore[misc]
    """A read-only file system that is slow.

    seconds: time that a request waits.
    bytes_per_second: speed of each open file.
    every: each request with a number that is a multiple of this fails. 0: none fails.
    log: file to which a line with the bytes and the name of each closed file is appended.
    """

    protocol = SCHEME
    seconds: ClassVar[float] = 0.0
    bytes_per_second: ClassVar[float] = 1e12
    every: ClassVar[int] = 0
    log: ClassVar[Path | None] = None
    requests: ClassVar[int] = 0
    _lock = threading.Lock()

    @classmethod
    def _strip_protocol(cls, path: Any) -> str:
        return "/" + str(path).removeprefix(f"{SCHEME}://").strip("/")

    @classmethod
    def request(cls) -> None:
        """Wait like a request. OSError if it is this request's turn to fail."""
        time.sleep(cls.seconds)
        with cls._lock:
            cls.requests += 1
            fails = cls.every and cls.requests % cls.every == 0
        if fails:
            raise OSError("connection reset by peer")

    def _open(self, path: str, mode: str = "rb", **options: Any) -> "SlowFile":
        self.request()
        return SlowFile(type(self), path)


class SlowFile:
    """A file of a slow store, opened for reading."""

    def __init__(self, store: type[SlowStore], path: str) -> None:
        self._store, self._path = store, path
        self._file = Path(path).open("rb")  # noqa: SIM115 - closed by close
        self._read = 0

    def __enter__(self) -> "SlowFile":
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes of the file."""
        data = self._file.read(size)
        self._read += len(data)
        time.sleep(len(data) / self._store.bytes_per_second)
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a position in the file."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Return the position in the file."""
        return self._file.tell()

    def close(self) -> None:
        """Close the file, and write to the log how many of its bytes were read."""
        self._file.close()
        if self._store.log is not None:
            with self._store.log.open("a", encoding="utf-8") as log:
                log.write(f"{self._read} {Path(self._path).name}\n")


def register_slow_store() -> None:
    """Let fsspec find the store under ``slow://``."""
    fsspec.register_implementation(SCHEME, SlowStore, clobber=True)


def count_reads(log: Path) -> tuple[Counter[str], int]:
    """Return how often each file was read, at least in part, and how many bytes were read."""
    lines = [line.split(" ", 1) for line in log.read_text(encoding="utf-8").splitlines()]
    return Counter(name for size, name in lines if int(size)), sum(int(size) for size, _ in lines)
