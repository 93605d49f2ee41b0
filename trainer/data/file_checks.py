"""Comparison of data files with the md5s of their manifest, in a thread while training begins."""

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

from bertdata.dataset.check import refuse_changed
from bertdata.dataset.reader import Shard
from bertdata.io.digests import STREAMS_AT_ONCE
from bertdata.io.file_check import compute_file_md5, compute_file_md5s


class FileChecks:
    """Thread that compares files with their md5s.

    Up to 8 waiting files are read side by side, which takes a third of the processor time of one after
    another.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._waiting = deque[tuple[Shard, Future[None]]]()

    def begin(self, shard: Shard) -> "Future[None]":
        """Begin to compare a file. The result raises ShardError if the file has another md5."""
        result = Future[None]()
        self._waiting.append((shard, result))
        self._thread.submit(self._check_waiting)
        return result

    def close(self) -> None:
        """End the thread. Files that are waiting are not compared."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        while self._waiting:
            self._waiting.popleft()[1].cancel()

    def _check_waiting(self) -> None:
        """Compare the files that have waited for the longest time."""
        # ``close`` may remove files at the same time, so the number of waiting files is not relied on.
        batch = list[tuple[Shard, Future[None]]]()
        with suppress(IndexError):
            while len(batch) < STREAMS_AT_ONCE:
                batch.append(self._waiting.popleft())
        found = _compute_md5s([shard.path for shard, _ in batch])
        for (shard, result), md5 in zip(batch, found, strict=True):
            try:
                refuse_changed(shard.path, compute_file_md5(shard.path) if md5 is None else md5, shard.md5)
            except Exception as error:
                result.set_exception(error)
            else:
                result.set_result(None)


def _compute_md5s(paths: list[str]) -> Sequence[str | None]:
    """Return the md5 of each file. If a file cannot be read, return None for each, because the error does not
    say which file it is about.
    """
    try:
        return compute_file_md5s(paths)
    except Exception:
        return [None] * len(paths)
