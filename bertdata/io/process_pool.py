"""Run independent work in several processes, results as they come or in order."""

import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, TypeVar

from bertdata.errors import BertDataError

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

Item = TypeVar("Item")
Result = TypeVar("Result")

RESULTS_AHEAD = 3
"""Results that each worker may be ahead of the reader of run_in_order."""


class WorkerDied(BertDataError):
    """A worker process was killed, by the system for want of memory for instance."""


def available_cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def start_method() -> str:
    """How workers start: fork, at once, where that is safe (this process has one thread), else spawn.

    Asked of Linux itself, which also counts the threads of libraries.
    """
    try:
        return "fork" if len(os.listdir("/proc/self/task")) == 1 else "spawn"
    except OSError:
        return "spawn"


def run_all(function: Callable[[Item], Result], items: Iterable[Item], workers: int) -> Iterator[Result]:
    """``function(item)`` of every item, in the order in which they finish.

    With one worker everything happens in this process. The first error ends the run: work under way
    is stopped, and cleans up behind itself.
    """
    work = list(items)
    workers = min(workers, len(work))
    if workers <= 1:
        yield from map(function, work)
        return
    from concurrent.futures import as_completed

    with _worker_pool(workers) as pool:
        for future in as_completed([pool.submit(_work, function, item) for item in work]):
            yield future.result()


def run_in_order(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int
) -> Generator[Result, None, None]:
    """``function(item)`` of every item, in the order of the items; else as run_all.

    Workers get a few results ahead of the reader and no more, so memory does not grow with the items.
    """
    work = list(items)
    workers = min(workers, len(work))
    if workers <= 1:
        yield from map(function, work)
        return
    with _worker_pool(workers) as pool:
        ahead: deque[Future[Result]] = deque()
        for item in work:
            ahead.append(pool.submit(_work, function, item))
            if len(ahead) > workers * RESULTS_AHEAD:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


@contextmanager
def _worker_pool(workers: int) -> Iterator["ProcessPoolExecutor"]:
    """Processes that are stopped when the block ends with an error, or is left early."""
    # Imported here: one worker needs none of it, and it takes as long to load as a small part to make.
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context(start_method())
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_prepare_worker)
    try:
        yield pool
    except BrokenProcessPool:
        raise WorkerDied(
            "a worker process died before its work was done (killed, or out of memory); "
            "run the same command again: finished shards are kept"
        ) from None
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _prepare_worker() -> None:
    """Leave Ctrl-C to the parent; end when it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from threading import Thread, get_ident

    Thread(target=_end_with_parent, args=[get_ident()], daemon=True).start()


def _end_with_parent(thread: int) -> None:
    """Tell the worker's main thread to end when the parent is gone; else it would wait for work for ever."""
    from multiprocessing import parent_process

    if (parent := parent_process()) is not None:
        parent.join()
        signal.pthread_kill(thread, signal.SIGTERM)


def _work(function: Callable[[Item], Result], item: Item) -> Result:
    """``function(item)``; on SIGTERM the end of this worker, with every ``finally`` run.

    The pool must not see that end: it would take it for a result, and give the worker the next item.
    """
    try:
        try:
            signal.signal(signal.SIGTERM, _exit)
            return function(item)
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)  # between items there is nothing to clean up
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 1)


def _exit(signum: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not disturb the cleaning up
    sys.exit(128 + signum)
