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
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from queue import SimpleQueue
from time import monotonic, sleep
from traceback import format_exception
from types import FrameType
from typing import Any, TypeVar

from bertdata.errors import BertDataError
from bertdata.io import work_limits
from bertdata.io.signals import INTERRUPTING, signals_held

Item = TypeVar("Item")
Result = TypeVar("Result")

WINDOW = 3
"""Items for each worker between the source and the reader of a pass in order: one in work, others waiting."""

TELL_SECONDS = 0.1
"""Time between two messages of one item's progress."""

Tell = Callable[[int], None]
"""Takes the amount of an item's work that is done so far."""

GRACE_SECONDS = 5.0
"""Time that a terminated worker has for its ``finally`` blocks before it is killed."""

WATCH_SECONDS = 0.25
"""Time between two looks at a worker's memory, where that is limited."""


class WorkerDied(BertDataError):
    """A worker process was killed, for example by the system for want of memory.

    how: its process and its end; work: the name of the piece of work that it was at; limit: which of its
    limits it broke (work_limits); the last two empty if there is none.
    """

    def __init__(self, message: str | None = None, *, how: str = "", work: str = "", limit: str = "") -> None:
        super().__init__(
            message
            or f"a worker process died before its work was done ({f'{how}: ' * bool(how)}killed, or out of "
            "memory); run the same command again: what is finished is kept"
        )
        self.work = work
        self.limit = limit


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
    """``function(item)`` of every item, in the order in which they finish; see ProcessPool.as_done."""
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
    """``function(item)`` of every item, in the order of the items; see ProcessPool.in_order."""
    work = list(items)
    with ProcessPool(min(workers, len(work))) as pool:
        for _, result in pool.in_order(function, work):
            yield result


class _Task:
    """One item on its way: waiting, in work, or done with a result or an error."""

    def __init__(self, function: Callable[..., Any], item: Any, tells: bool) -> None:
        self.function = function
        self.item = item
        self.tells = tells
        self.amount = 0
        self.dropped = False
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None

    def value(self) -> Any:
        """The result; raises the worker's error."""
        if self.error is not None:
            raise self.error
        return self.result


class ProcessPool:
    """Worker processes, started at the first item; with one worker everything happens in this process.

    A pool serves several passes, also one whose items come from another pass of the same pool.
    apart: one worker is a process of its own too, unless this process may start none. memory_bytes: memory
    by which a worker may grow (where /proc tells).
    """

    def __init__(self, workers: int, *, apart: bool = False, memory_bytes: int | None = None) -> None:
        self._size = workers
        self._here = workers <= 1 and not (apart and workers and _may_start_processes())
        self._memory_bytes = memory_bytes
        self._workers: list[_Worker] = []
        self._threads: list[threading.Thread] = []
        self._waiting: SimpleQueue[_Task | None] = SimpleQueue()
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
        under_way: deque[_Task] = deque()
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
                yield function(item) if under_way is None else function(item, _Teller(under_way))
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

    def _first(self, under_way: deque[_Task]) -> tuple[Any, Any]:
        self._wait_for_any([under_way[0]])
        task = under_way.popleft()
        return task.item, task.value()

    def _wait_for_any(self, tasks: list[_Task], amount: int = 0) -> None:
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

    def _submit(self, function: Callable[..., Any], item: Any, *, tells: bool = False) -> _Task:
        if not self._workers:
            self._start()
        task = _Task(function, item, tells)
        self._waiting.put(task)
        return task

    def _start(self) -> None:
        """Start all workers, then their threads: forking is safe only before there are threads."""
        import multiprocessing  # imported here: one worker needs none of it

        context: Any = multiprocessing.get_context(start_method())
        try:
            with signals_held(), _signals_blocked():
                for _ in range(self._size):
                    self._workers.append(_Worker(context, self._workers, self._memory_bytes))
                for worker in self._workers:
                    thread = threading.Thread(target=self._serve, args=[worker], daemon=True)
                    thread.start()
                    self._threads.append(thread)
        except (OSError, RuntimeError) as error:  # no memory, or the user's limit of processes
            reason = getattr(error, "strerror", None) or error
            raise BertDataError(f"cannot start {self._size} workers: {reason}; give fewer") from None

    def _serve(self, worker: "_Worker") -> None:
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

    def _told(self, task: _Task, amount: int) -> None:
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
        """Stop the workers now; what they are at cleans up behind itself, for GRACE_SECONDS at most."""
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
        self._waiting, self._death = SimpleQueue(), None

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


def _drop(tasks: Iterable[_Task]) -> None:
    for task in tasks:
        task.dropped = True


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Block SIGINT and SIGTERM in workers that start in the block, until their handlers are set."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Worker:
    """One worker process and this process's end of its pipe."""

    def __init__(self, context: Any, others: list["_Worker"], memory_bytes: int | None) -> None:
        self._name = context.RawArray("c", work_limits.NAME_BYTES)
        self._connection, theirs = context.Pipe()
        # A forked worker inherits the ends of all pipes so far. It closes them, so that each pipe is at its
        # end when the one process at either side is gone.
        inherited = [worker._connection for worker in [*others, self]]
        forked = context.get_start_method() == "fork"
        arguments = [theirs, inherited if forked else [], self._name]
        self.process = context.Process(target=_work, args=arguments, daemon=True)
        self.process.start()
        theirs.close()
        self._over_memory = False
        self._memory_bytes = memory_bytes and memory_bytes + (work_limits.own_memory(self.process.pid) or 0)

    def do(self, task: _Task, told: Tell) -> tuple[Any, BaseException | None]:
        """Result and error of the task, one of them None; told: called with what it tells before.

        WorkerDied where the process ends before it has sent them.
        """
        from multiprocessing.reduction import ForkingPickler

        try:
            work = ForkingPickler.dumps((task.function, task.item, task.tells))
        except Exception as error:
            return None, error
        try:
            self._connection.send_bytes(work)
            while isinstance(message := self._next_message(), int):
                told(message)
        except (EOFError, OSError):
            raise self._death() from None
        result, failure, trace = message
        if failure is not None:
            failure.__cause__ = _WorkerTraceback(trace)
        return result, failure

    def _next_message(self) -> Any:
        """An amount told, or the end of the item: result, error and traceback."""
        self._wait_for_message()
        if not self._connection.poll():
            raise EOFError
        return self._connection.recv()

    def _wait_for_message(self) -> None:
        """Wait for a message or the process's end; kill the process if it takes too much memory."""
        from multiprocessing.connection import wait

        ends = [self._connection, self.process.sentinel]
        while not wait(ends, None if self._memory_bytes is None else WATCH_SECONDS):
            if (work_limits.own_memory(self.process.pid) or 0) > (self._memory_bytes or 0):
                self._over_memory = True
                self.process.kill()
                self.process.join()
                return

    def _death(self) -> WorkerDied:
        self.process.join(GRACE_SECONDS)
        status = self.process.exitcode
        over_time = status == -signal.SIGPROF
        limit = work_limits.MEMORY if self._over_memory else work_limits.CPU if over_time else ""
        by = f"exit status {status}" if status is None or status >= 0 else signal.Signals(-status).name
        how = f"process {self.process.pid}, {by}"
        return WorkerDied(how=how, work=self._name.value.decode(errors="replace"), limit=limit)

    def close(self) -> None:
        """Close the pipe, which ends an idle worker, and wait for its end."""
        self._connection.close()
        self.process.join()


class _WorkerTraceback(Exception):
    """The traceback in the worker, shown as the cause of its error."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def _work(connection: Any, inherited: list[Any], name: Any) -> None:
    """The worker: take items from the pipe and send results until the pipe ends."""
    work_limits.share_name(name)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTING)
    for other in inherited:
        other.close()
    try:
        threading.Thread(target=_end_with_parent, args=[threading.get_ident()], daemon=True).start()
    except RuntimeError:  # no memory
        os._exit(1)
    with suppress(EOFError, OSError, MemoryError):  # the parent closed the pipe, or is gone
        while True:
            function, item, tells = connection.recv()
            call = partial(function, item, _Teller(connection.send)) if tells else partial(function, item)
            connection.send_bytes(_outcome(call))
            del function, item, call


class _Teller:
    """Passes an item's amounts on, but none so soon after another that it costs time."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._next = 0.0

    def __call__(self, amount: int) -> None:
        if (now := monotonic()) >= self._next:
            self._next = now + TELL_SECONDS
            self._tell(amount)


def _outcome(call: Callable[[], Any]) -> Any:
    """Result, error and traceback of the call, pickled.

    On SIGTERM the process ends, when every ``finally`` has run.
    """
    import pickle
    from multiprocessing.reduction import ForkingPickler

    try:
        try:
            signal.signal(signal.SIGTERM, _exit)
            return ForkingPickler.dumps((call(), None, ""))
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)  # between items there is nothing to clean up
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 1)
    except BaseException as error:
        trace = "".join(format_exception(error))
        try:
            return pickle.dumps((None, pickle.loads(pickle.dumps(error)), trace))
        except Exception:  # an error that cannot travel as it is
            return pickle.dumps((None, RuntimeError(f"{type(error).__name__}: {error}"), trace))


def _exit(signum: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not disturb the cleaning up
    sys.excepthook = sys.unraisablehook = _say_nothing  # of finalizers of what this cuts short
    sys.exit(128 + signum)


def _say_nothing(*error: object) -> None:
    """A hook for errors that nobody need see."""


def _end_with_parent(main_thread: int) -> None:
    """End this worker when the parent is gone, however it ended: by SIGTERM, in the end by force."""
    from multiprocessing import parent_process

    if (parent := parent_process()) is not None:
        parent.join()
        signal.pthread_kill(main_thread, signal.SIGTERM)
        sleep(GRACE_SECONDS)
        os._exit(1)
