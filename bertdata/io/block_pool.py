"""Work spread over processes, results in order, and never more than a window of it in memory."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from typing import TypeVar

from bertdata.io.process_pool import WorkerDied, start_method

Item = TypeVar("Item")
Result = TypeVar("Result")

_WINDOW = 3
"""Items a worker: one in work, one waiting for it, one finished that waits for its turn."""


class Pool:
    """``workers`` processes; with one worker everything happens in this process."""

    def __init__(self, workers: int) -> None:
        self._window = _WINDOW * workers
        self._executor = None
        if workers > 1:
            self._executor = ProcessPoolExecutor(
                workers, mp_context=multiprocessing.get_context(start_method()), initializer=_begin_worker
            )

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[tuple[Item, Result]]:
        """Each item with its result, in the items' order; items are taken as the window moves on."""
        if self._executor is None:
            for item in items:
                yield item, function(item)
            return
        waiting: deque[tuple[Item, Future[Result]]] = deque()
        try:
            for item in items:
                waiting.append((item, self._executor.submit(function, item)))
                if len(waiting) >= self._window:
                    first, future = waiting.popleft()
                    yield first, future.result()
            while waiting:
                first, future = waiting.popleft()
                yield first, future.result()
        except BrokenProcessPool:
            raise WorkerDied(
                "a worker process ended unexpectedly, killed or out of memory; use fewer workers"
            ) from None

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *failure: object) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)


def _begin_worker() -> None:
    """Leave an interrupt to the parent, and end when the parent has ended, however it did."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
