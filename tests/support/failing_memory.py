"""A file system in memory whose requests fail or wait as a test asks for: ``failing://``."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, ClassVar

import fsspec
from fsspec.implementations.memory import MemoryFileSystem


class FailingFileSystem(MemoryFileSystem):  # type: ignore[misc]
    """A file system in memory. Each of its requests may fail.

    every: each request with a number that is a multiple of this fails. 0: none fails.
    most: number of failures after which no request fails.
    error: the exception of a failing request.
    seconds: time that each upload waits.
    only: part of the name of the files whose requests fail. "": all files.
    """

    protocol = "failing"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    every = 0
    most = 1_000_000
    error: Exception = OSError("connection reset by peer")
    seconds = 0.0
    only = ""
    requests = 0
    failures = 0
    _lock = threading.Lock()

    @classmethod
    def request(cls, path: Any) -> None:
        """Count a request, and fail if it is its turn."""
        if cls.only not in str(path):
            return
        with cls._lock:
            cls.requests += 1
            fails = cls.every > 0 and cls.requests % cls.every == 0 and cls.failures < cls.most
            cls.failures += fails
        if fails:
            raise cls.error

    def cat_file(self, path: str, *words: Any, **options: Any) -> Any:
        self.request(path)
        return super().cat_file(path, *words, **options)

    def get_file(self, path: str, *words: Any, **options: Any) -> Any:
        self.request(path)
        return super().get_file(path, *words, **options)

    def put_file(self, local: str, path: str, *words: Any, **options: Any) -> Any:
        time.sleep(self.seconds)
        self.request(path)
        return super().put_file(local, path, *words, **options)

    def pipe_file(self, path: str, *words: Any, **options: Any) -> Any:
        self.request(path)
        return super().pipe_file(path, *words, **options)

    def rm_file(self, path: str) -> None:
        self.request(path)
        super().rm_file(path)

    def find(self, path: str, *words: Any, **options: Any) -> Any:
        self.request(path)
        return super().find(path, *words, **options)


@contextmanager
def failing_memory() -> Iterator[type[FailingFileSystem]]:
    """An empty file system at ``failing://`` that does not fail yet."""
    kind: type[FailingFileSystem] = type("Failing", (FailingFileSystem,), {"store": {}, "pseudo_dirs": [""]})
    fsspec.register_implementation("failing", kind, clobber=True)
    try:
        yield kind
    finally:
        import_module("fsspec.registry")._registry.pop("failing")
