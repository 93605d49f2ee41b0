"""Comparison of data files with the md5s of their manifest, in a thread while the training goes on."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from threading import Lock

from bertdata.dataset.check import refuse_changed
from bertdata.dataset.reader import Shard
from bertdata.io.digests import STREAMS_AT_ONCE
from bertdata.io.file_check import compute_file_md5, compute_file_md5s


class ChecksEnded(Exception):
    """The run ends, so that the rest of a file is not read for its md5."""


class FileChecks:
    """Thread that compares files with their md5s, in the order in which the comparisons were begun.

    Up to 8 waiting files are read side by side, which takes a third of the processor time of one after
    another.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        # ``_lock`` guards the comparisons whose files are waiting to be read, the next one first.
        self._lock, self._waiting = Lock(), OrderedDict[Future[None], Shard]()
        self._is_closed = False

    def begin(self, shard: Shard) -> "Future[None]":
        """Begin to compare a file. The result raises ShardError if the file has another md5."""
        result = Future[None]()
        with self._lock:
            self._waiting[result] = shard
        self._thread.submit(self._check_waiting)
        return result

    def await_results(self, results: Iterable["Future[None]"], seconds: float) -> "set[Future[None]]":
        """Wait for the results of some comparisons, which are made before all others. Return the results that
        are not known after a time.

        results: what ``begin`` returned.
        seconds: longest time to wait.
        Raises ShardError if one of the files has another md5.
        """
        wanted = list(results)
        with self._lock:
            for result in reversed(wanted):
                if result in self._waiting:
                    self._waiting.move_to_end(result, last=False)
        done, left = wait(wanted, timeout=seconds, return_when=FIRST_EXCEPTION)
        for result in done:
            result.result()
        return left

    def close(self) -> None:
        """End the thread. Files that are waiting are not compared, and those that are being read are not read
        to their ends.
        """
        self._is_closed = True
        self._thread.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            while self._waiting:
                self._waiting.popitem()[0].cancel()

    def _check_waiting(self) -> None:
        """Compare the next files that wait."""
        with self._lock:
            count = min(STREAMS_AT_ONCE, len(self._waiting))
            batch = [self._waiting.popitem(last=False) for _ in range(count)]
        found = _compute_md5s([shard.path for _, shard in batch], self._raise_if_closed)
        for (result, shard), md5 in zip(batch, found, strict=True):
            try:
                if md5 is None:
                    md5 = compute_file_md5(shard.path, also=lambda block: self._raise_if_closed())
                refuse_changed(shard.path, md5, shard.md5)
            except Exception as error:
                result.set_exception(error)
            else:
                result.set_result(None)

    def _raise_if_closed(self) -> None:
        """Raise ChecksEnded if ``close`` was called."""
        if self._is_closed:
            raise ChecksEnded


def _compute_md5s(paths: list[str], before_blocks: Callable[[], None]) -> Sequence[str | None]:
    """Return the md5 of each file. If a file cannot be read, return None for each, because the error does not
    say which file it is about.

    before_blocks: argument of ``compute_file_md5s``.
    """
    try:
        return compute_file_md5s(paths, before_blocks)
    except Exception:
        return [None] * len(paths)
