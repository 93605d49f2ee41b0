"""A pool of worker processes: results as they come, or in order with a bounded window.

One rule for all work that is spread over processes:

- **Start**: fork where this process has one thread, else spawn. Each worker has a pipe of its own.
- **Signals**: a worker ignores SIGINT, which is the parent's to handle. SIGTERM ends it, after the
  ``finally`` blocks of the item in work have run. Neither cuts the start or the end of the workers short.
- **End of the parent**: a worker ends when the parent is gone, however that ended.
- **Death of a worker**: its sentinel and its pipe tell of it at once; the pass ends with WorkerDied.
- **Limits**: a worker whose memory grows beyond the pool's limit is killed; ``io/work_limits.py`` says why.
- **Stop**: an error, or a reader that leaves early, terminates all workers; one that has not ended
  after a few seconds is killed.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from bertdata.errors import BertDataError
from bertdata.io.freed_memory import return_freed_memory
from bertdata.io.signals import signals_held
from bertdata.io.worker_process import (
    GRACE_SECONDS,
    PoolTask,
    Tell,
    Teller,
    WorkerDied,
    WorkerProcess,
    signals_blocked,
)

if TYPE_CHECKING:
    from queue import SimpleQueue

Item = TypeVar("Item")
Result = TypeVar("Result")

WINDOW = 3
"""Items for each worker between the source and the reader of a pass in order: one in work, others waiting."""


def available_cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def start_method() -> str:
    """Start method of workers: fork, which is quick, where it is safe (one thread), else spawn.

    Linux itself is asked, which also counts the threads of libraries.
    """
    try:
        return "fork" if len(os.listdir("/proc/self/task")) == 1 else "spawn"
    except OSError:
        return "spawn"


def run_all(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int
) -> Generator[Result, None, None]:
    """``function(item)`` of every item, in the order in which they finish. See ProcessPool.as_done."""
    work = list(items)
    with ProcessPool(min(workers, len(work))) as pool:
        yield from pool.as_done(function, work)


def run_all_telling(
    function: Callable[[Item, Tell], Result], items: Iterable[Item], workers: int, under_way: Tell
) -> Generator[Result, None, None]:
    """``function(item, tell)`` of every item, in the order in which they finish.

    under_way: called now and then, in this thread, with the sum of what the unfinished items told last.
    """
    work = list(items)
    with ProcessPool(min(workers, len(work))) as pool:
        yield from pool.as_done(function, work, under_way)


def run_in_order(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int
) -> Generator[Result, None, None]:
    """``function(item)`` of every item, in the order of the items. See ProcessPool.in_order."""
    work = list(items)
    with ProcessPool(min(workers, len(work))) as pool:
        for _, result in pool.in_order(function, work):
            yield result


class ProcessPool:
    """Worker processes, started at the first item. With one worker everything happens in this process.

    A pool serves several passes, also one whose items come from another pass of the same pool.
    apart: one worker is a process of its own too, unless this process may start none. memory_bytes: memory
    by which a worker may grow (where /proc tells).
    """

    def __init__(self, workers: int, *, apart: bool = False, memory_bytes: int | None = None) -> None:
        self._size = workers
        self._here = workers <= 1 and not (apart and workers and _may_start_processes())
        self._memory_bytes = memory_bytes
        self._workers: list[WorkerProcess] = []
        self._threads: list[threading.Thread] = []
        self._waiting: SimpleQueue[PoolTask | None]  # from the start of the workers on
        self._changed = threading.Condition()
        self._death: WorkerDied | None = None

    def in_order(
        self, function: Callable[[Item], Result], items: Iterable[Item]
    ) -> Generator[tuple[Item, Result], None, None]:
        """Each item with ``function(item)``, in the items' order.

        Items are taken as the window moves on, so that they may be endless: memory does not grow.
        """
        if self._here:
            for item in items:
                yield item, function(item)
            return
        under_way: deque[PoolTask] = deque()
        try:
            for item in items:
                under_way.append(self._submit(function, item))
                if len(under_way) >= WINDOW * self._size:
                    yield self._first(under_way)
            while under_way:
                yield self._first(under_way)
        finally:
            _drop(under_way)

    def as_done(
        self, function: Callable[..., Result], items: Iterable[Item], under_way: Tell | None = None
    ) -> Generator[Result, None, None]:
        """``function(item)`` of every item, in the order in which they finish.

        With under_way as run_all_telling takes it: ``function(item, tell)``.
        """
        if self._here:
            for item in items:
                yield function(item) if under_way is None else function(item, Teller(under_way))
            return
        tasks = [self._submit(function, item, tells=under_way is not None) for item in items]
        try:
            while tasks:
                amount = sum(task.amount for task in tasks)
                self._wait_for_any(tasks, amount)
                finished = [task for task in tasks if task.done]
                tasks = [task for task in tasks if not task.done]
                for task in finished:
                    yield task.value()
                if under_way is not None:
                    under_way(sum(task.amount for task in tasks))
        finally:
            _drop(tasks)

    def _first(self, under_way: deque[PoolTask]) -> tuple[Any, Any]:
        self._wait_for_any([under_way[0]])
        task = under_way.popleft()
        return task.item, task.value()

    def _wait_for_any(self, tasks: list[PoolTask], amount: int = 0) -> None:
        """Wait until one is done, or together they have told of another amount."""
        with self._changed:
            self._changed.wait_for(
                lambda: (
                    self._death is not None
                    or any(task.done for task in tasks)
                    or sum(task.amount for task in tasks) != amount
                )
            )
        if self._death is not None:
            raise self._death

    def _submit(self, function: Callable[..., Any], item: Any, *, tells: bool = False) -> PoolTask:
        if not self._workers:
            self._start()
        task = PoolTask(function, item, tells)
        self._waiting.put(task)
        return task

    def _start(self) -> None:
        """Start all workers, then their threads: forking is safe only before there are threads."""
        import multiprocessing  # imported here: one worker needs none of it
        from queue import SimpleQueue

        self._waiting = SimpleQueue()
        return_freed_memory()  # what an earlier pool's results took, which each forked worker would have too

        context: Any = multiprocessing.get_context(start_method())
        try:
            with signals_held(), signals_blocked():
                for _ in range(self._size):
                    self._workers.append(WorkerProcess(context, self._workers, self._memory_bytes))
                for worker in self._workers:
                    thread = threading.Thread(target=self._serve, args=[worker], daemon=True)
                    thread.start()
                    self._threads.append(thread)
        except (OSError, RuntimeError) as error:  # no memory, or the user's limit of processes
            reason = getattr(error, "strerror", None) or error
            raise BertDataError(f"cannot start {self._size} workers: {reason}; give fewer") from None

    def _serve(self, worker: WorkerProcess) -> None:
        """Hand tasks to one worker, one after another, until None comes."""
        while (task := self._waiting.get()) is not None:
            if task.dropped:
                continue
            try:
                task.result, task.error = worker.do(task, partial(self._told, task))
            except WorkerDied as death:
                with self._changed:
                    self._death = self._death or death
                    self._changed.notify_all()
                return
            with self._changed:
                task.done = True
                self._changed.notify_all()

    def _told(self, task: PoolTask, amount: int) -> None:
        with self._changed:
            task.amount = amount
            self._changed.notify_all()

    def close(self) -> None:
        """End the workers when they have done what they are at."""
        for _ in self._workers:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()
        with signals_held():
            self._close_workers()

    def terminate(self) -> None:
        """Stop the workers now. What they are at cleans up behind itself, for GRACE_SECONDS at most."""
        with signals_held():
            self._terminate()

    def _terminate(self) -> None:
        for _ in self._workers:
            self._waiting.put(None)
        for worker in self._workers:
            worker.process.terminate()
        deadline = monotonic() + GRACE_SECONDS
        for worker in self._workers:
            worker.process.join(max(0.0, deadline - monotonic()))
            if worker.process.is_alive():
                worker.process.kill()
        for thread in self._threads:
            thread.join()
        self._close_workers()

    def _close_workers(self) -> None:
        for worker in self._workers:
            worker.close()
        self._workers, self._threads = [], []
        self._death = None

    def __enter__(self) -> "ProcessPool":
        return self

    def __exit__(self, kind: type[BaseException] | None, *failure: object) -> None:
        if kind is not None or self._death is not None:
            self.terminate()
            return
        try:
            self.close()
        except BaseException:
            self.terminate()
            raise


def _may_start_processes() -> bool:
    """False in a daemon of multiprocessing, such as most workers of Dask."""
    from multiprocessing import current_process

    return not current_process().daemon


def _drop(tasks: Iterable[PoolTask]) -> None:
    for task in tasks:
        task.dropped = True
