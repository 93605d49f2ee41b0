"""A pool of worker processes that returns results as they finish, or in order with bounded memory.

``multiprocessing.Pool`` is not used, because it waits forever for the result of a worker that was killed. The
rules of this pool:

- **Start**: workers are forked if this process has a single thread, else spawned. Each has a separate pipe.
- **Signals**: workers ignore SIGINT, which the parent handles. SIGTERM ends a worker after the ``finally``
  blocks of its current item. Neither signal interrupts the start or the end of the workers.
- **End of the parent**: workers end when the parent process is gone, however it ended.
- **Death of a worker**: detected at once. The current pass ends with WorkerDied.
- **Limits**: a worker that grows beyond the pool's memory limit is killed. See ``io/work_limits.py``.
- **Stop**: after an error, or when the reader stops early, all workers are terminated. Those that have not
  ended after a few seconds are killed.
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
from bertdata.io.signals import delay_signals
from bertdata.io.worker_process import (
    GRACE_SECONDS,
    PoolTask,
    RateLimitedReport,
    ReportAmount,
    WorkerDied,
    WorkerProcess,
    block_signals,
)

if TYPE_CHECKING:
    from queue import SimpleQueue

Item = TypeVar("Item")
Result = TypeVar("Result")

WINDOW = 3
"""Number of items per worker that ``in_order`` takes from its source ahead of the results.

The worker works on the first of them. The others wait, so that it never has to wait itself.
"""


def count_available_cores() -> int:
    """Return the number of processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def choose_start_method() -> str:
    """Return how to start workers: ``fork`` if this process has a single thread, otherwise ``spawn``.

    Forking is much faster, but unsafe while another thread holds a lock. The number of threads is read from
    Linux, because Python does not know the threads of C libraries.
    """
    try:
        return "fork" if len(os.listdir("/proc/self/task")) == 1 else "spawn"
    except OSError:
        return "spawn"


def run_all(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int
) -> Generator[Result, None, None]:
    """Yield ``function(item)`` for every item, in the order in which the results are ready.

    workers: number of processes to start for this call.
    """
    work = list(items)
    with ProcessPool(min(workers, len(work))) as pool:
        yield from pool.as_done(function, work)


def run_all_with_progress(
    function: Callable[[Item, ReportAmount], Result],
    items: Iterable[Item],
    workers: int,
    under_way: ReportAmount,
) -> Generator[Result, None, None]:
    """Yield ``function(item, tell)`` for every item, in the order in which the results are ready.

    While it works on an item, the function may call ``tell(amount)`` to report how far it is.

    under_way: function that is called now and then, in this thread, with the progress of the items in work:
        the sum of the amounts that they last reported.
    """
    work = list(items)
    with ProcessPool(min(workers, len(work))) as pool:
        yield from pool.as_done(function, work, under_way)


def run_in_order(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int
) -> Generator[Result, None, None]:
    """Yield ``function(item)`` for every item, in the order of the items.

    workers: number of processes to start for this call.
    """
    work = list(items)
    with ProcessPool(min(workers, len(work))) as pool:
        for _, result in pool.in_order(function, work):
            yield result


class ProcessPool:
    """A pool of worker processes, started when the first item is submitted.

    With one worker, all work is done in the calling process. A pool can be used for several calls of
    ``in_order`` or ``as_done``. The items of a call may be the results of another call on the same pool.

    workers: number of processes.
    apart: start a process even for a single worker. Has no effect in a process that may not start others.
    memory_bytes: number of bytes by which a worker may grow before it is killed. None: no limit. Only works
        on systems with /proc.
    """

    def __init__(self, workers: int, *, apart: bool = False, memory_bytes: int | None = None) -> None:
        self._size = workers
        self._here = workers <= 1 and not (apart and workers and _may_start_processes())
        self._memory_bytes = memory_bytes
        self._workers: list[WorkerProcess] = []
        self._threads: list[threading.Thread] = []
        # tasks for idle workers; the queue is created when the workers are started
        self._waiting: SimpleQueue[PoolTask | None]
        self._changed = threading.Condition()
        self._death: WorkerDied | None = None

    def in_order(
        self, function: Callable[[Item], Result], items: Iterable[Item]
    ) -> Generator[tuple[Item, Result], None, None]:
        """Yield each item and the result ``function(item)``, in the order of the items.

        At most WINDOW items per worker are taken from ``items`` ahead of the results. So the items may come
        from an endless iterator, and memory does not grow.
        """
        if self._here:
            for item in items:
                yield item, function(item)
            return
        under_way: deque[PoolTask] = deque()
        try:
            # The oldest task is yielded first. While its worker is slow, the others can work at most
            # WINDOW items per worker ahead. Then no more items are taken from the source.
            for item in items:
                under_way.append(self._submit(function, item))
                if len(under_way) >= WINDOW * self._size:
                    yield self._wait_for_first(under_way)
            while under_way:
                yield self._wait_for_first(under_way)
        finally:
            _drop_tasks(under_way)  # the reader stopped early: the workers need not begin these

    def as_done(
        self, function: Callable[..., Result], items: Iterable[Item], under_way: ReportAmount | None = None
    ) -> Generator[Result, None, None]:
        """Yield ``function(item)`` for every item, in the order in which the results are ready.

        under_way: function that is called now and then with the progress of the items in work. If it is not
            None, the work is done by ``function(item, tell)``, which may call ``tell(amount)`` to report how
            far it is. The progress is the sum of the amounts that the items last reported.
        """
        if self._here:
            for item in items:
                yield function(item) if under_way is None else function(item, RateLimitedReport(under_way))
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
            _drop_tasks(tasks)

    def _wait_for_first(self, under_way: deque[PoolTask]) -> tuple[Any, Any]:
        """Wait for the oldest task in the queue. Returns its item and result."""
        self._wait_for_any([under_way[0]])
        task = under_way.popleft()
        return task.item, task.value()

    def _wait_for_any(self, tasks: list[PoolTask], amount: int = 0) -> None:
        """Wait until one of the tasks is done, or until their total progress differs from ``amount``.

        Raises WorkerDied if a worker died meanwhile.
        """
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
        """Queue an item for the next idle worker, and start the workers if this is the first item.

        tells: True if the function takes a second argument, by which it reports its progress.
        """
        if not self._workers:
            self._start()
        task = PoolTask(function, item, tells)
        self._waiting.put(task)
        return task

    def _start(self) -> None:
        """Start all worker processes, then one thread per worker that talks to it.

        The processes come first, because forking is only safe while this process has a single thread.
        """
        import multiprocessing  # imported here because it is slow, and not needed for one worker
        from queue import SimpleQueue

        self._waiting = SimpleQueue()
        return_freed_memory()  # otherwise each forked worker would inherit freed memory of earlier results

        context: Any = multiprocessing.get_context(choose_start_method())
        try:
            with delay_signals(), block_signals():
                for _ in range(self._size):
                    self._workers.append(WorkerProcess(context, self._workers, self._memory_bytes))
                for worker in self._workers:
                    thread = threading.Thread(target=self._pass_tasks, args=[worker], daemon=True)
                    thread.start()
                    self._threads.append(thread)
        except (OSError, RuntimeError) as error:  # out of memory, or the user's process limit is reached
            reason = getattr(error, "strerror", None) or error
            raise BertDataError(f"cannot start {self._size} workers: {reason}; give fewer") from None

    def _pass_tasks(self, worker: WorkerProcess) -> None:
        """Pass tasks to a worker, one after another, until the queue returns None.

        Runs in a thread of its own.
        """
        while (task := self._waiting.get()) is not None:
            if task.dropped:
                continue
            try:
                task.result, task.error = worker.run_task(task, partial(self._store_amount, task))
            except WorkerDied as death:
                with self._changed:
                    self._death = self._death or death
                    self._changed.notify_all()
                return
            with self._changed:
                task.done = True
                self._changed.notify_all()

    def _store_amount(self, task: PoolTask, amount: int) -> None:
        """Store the progress that a worker has reported for a task."""
        with self._changed:
            task.amount = amount
            self._changed.notify_all()

    def close(self) -> None:
        """Let the workers finish the queued tasks, then end them."""
        for _ in self._workers:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()
        with delay_signals():
            self._close_workers()

    def terminate(self) -> None:
        """Stop the workers now. Their ``finally`` blocks have GRACE_SECONDS to run before they are killed."""
        with delay_signals():
            self._terminate()

    def _terminate(self) -> None:
        """Terminate the workers, wait for them, and close their pipes. Called while signals are delayed."""
        for _ in self._workers:
            self._waiting.put(None)  # ends the threads, which would otherwise wait for tasks forever
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
        """Close the workers' pipes and discard the workers. The next submitted item starts new ones."""
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
    """Return False in a daemon process of multiprocessing, which may not start processes.

    Most workers of Dask are such processes.
    """
    from multiprocessing import current_process

    return not current_process().daemon


def _drop_tasks(tasks: Iterable[PoolTask]) -> None:
    """Mark tasks as dropped, so that they are not given to a worker."""
    for task in tasks:
        task.dropped = True
