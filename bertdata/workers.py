"""Run independent work in several processes, results as they come."""

import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from bertdata.errors import BertDataError

Item = TypeVar("Item")
Result = TypeVar("Result")

RESULTS_AHEAD = 3
"""Results a worker may be ahead of the reader of run_in_order."""


class WorkerDied(BertDataError):
    """A worker process was killed, by the system for want of memory for instance."""


def available_cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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
    with _worker_pool(workers) as pool:
        futures: list[Future[Result]] = [pool.submit(function, item) for item in work]
        for future in as_completed(futures):
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
            ahead.append(pool.submit(function, item))
            if len(ahead) > workers * RESULTS_AHEAD:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


@contextmanager
def _worker_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that are stopped when the block ends with an error, or is left early."""
    context = multiprocessing.get_context("spawn")  # the same on every system, and safe with threads
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
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _prepare_worker() -> None:
    """Leave Ctrl-C to the parent; end on its word with every ``finally`` run."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _exit)


def _exit(signum: int, frame: FrameType | None) -> None:
    sys.exit(128 + signum)
