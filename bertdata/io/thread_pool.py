"""A pool of threads for functions that release the GIL: results in order with a bounded window.

The contract is that of ``process_pool``, with threads in place of processes: nothing is pickled, a worker
cannot be killed. When the pool ends, whether by an error, by a signal or by a reader that leaves early,
what has not begun is never begun, and what is in work is waited for.

The calling thread is one of the workers: while the next result is not there, it takes items as the others
do. A thread more than there are cores would cost what the cores' caches hold each time they change over.

concurrent.futures is not used: it takes 5 ms to import, and ten times the CPU time to hand an item over.
"""

import sys
from _thread import allocate_lock
from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from bertdata.errors import BertDataError
from bertdata.io.signals import signals_held

if TYPE_CHECKING:
    from queue import SimpleQueue
    from threading import Thread

WINDOW = 8
"""Items under way for each worker: many, because the calling thread, busy with an item, adds no others."""

SWITCH_SECONDS = 0.0003
"""Time after which a thread that computes in Python lets another one do so, while a pool has threads.

A worker that comes out of a kernel waits as long for its next item; Python's usual 5 ms are as long as the
kernels' work on some items.
"""

Item = TypeVar("Item")
Result = TypeVar("Result")


class ThreadPool:
    """Workers: the calling thread, and others that are started at the first items.

    A pool serves several passes, also one whose items come from another pass of the same pool.
    """

    def __init__(self, workers: int) -> None:
        self._size = workers
        self._threads: list[Thread] = []
        self._calls: SimpleQueue[_Call | None]
        self._ended = False
        self._usual_switch = 0.0

    def in_order(
        self, function: Callable[[Item], Result], items: Iterable[Item]
    ) -> Generator[tuple[Item, Result], None, None]:
        """Each item with ``function(item)``, in the items' order. An error of the function in its place.

        Items are taken as the window moves on, so that they may be endless: memory does not grow.
        """
        if self._size <= 1:
            for item in items:
                yield item, function(item)
            return
        under_way: deque[_Call] = deque()
        try:
            for item in items:
                under_way.append(self._submit(function, item))
                if len(under_way) >= WINDOW * self._size:
                    call = under_way.popleft()
                    yield call.item, self._result(call)
            while under_way:
                call = under_way.popleft()
                yield call.item, self._result(call)
        finally:
            for call in under_way:
                call.is_cancelled = True

    def _result(self, call: "_Call") -> Any:
        """The call's result. While another worker is at it, this one makes calls that wait."""
        while not call.is_finished() and (waiting := self._next_waiting()):
            waiting.run()
        return call.result()

    def _next_waiting(self) -> "_Call | None":
        """A call that no worker has begun, if there is one. It will not be begun by another."""
        from queue import Empty

        try:
            return self._calls.get_nowait()
        except Empty:
            return None

    def _submit(self, function: Callable[[Any], Any], item: Any) -> "_Call":
        if self._ended:
            raise _cancelled()
        if len(self._threads) < self._size - 1:
            try:
                self._start_thread()
            except RuntimeError as error:  # no memory, or the user's limit of threads
                raise BertDataError(f"cannot start {self._size} workers: {error}; give fewer") from None
        call = _Call(function, item)
        self._calls.put(call)
        return call

    def _start_thread(self) -> None:
        from queue import SimpleQueue  # imported here: one worker needs none of it
        from threading import Thread

        if not self._threads:
            self._calls = SimpleQueue()
        thread = Thread(target=self._work)
        with signals_held():  # close knows each thread that was started
            thread.start()
            self._threads.append(thread)
            if len(self._threads) == 1:
                self._usual_switch = sys.getswitchinterval()
                sys.setswitchinterval(min(self._usual_switch, SWITCH_SECONDS))

    def _work(self) -> None:
        """A thread's work: one call after another, to the pool's end."""
        while (call := self._calls.get()) is not None:
            if self._ended:
                call.is_cancelled = True
            call.run()

    def close(self) -> None:
        """End the threads when they have done what they are at. Nothing else is begun."""
        self._ended = True
        with signals_held():
            for _ in self._threads:
                self._calls.put(None)
            for thread in self._threads:
                thread.join()
            if self._threads:
                sys.setswitchinterval(self._usual_switch)
            self._threads.clear()

    def __enter__(self) -> "ThreadPool":
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()


class _Call:
    """The function's call with an item, whose result is waited for."""

    __slots__ = ("_error", "_function", "_result", "_unfinished", "is_cancelled", "item")

    def __init__(self, function: Callable[[Any], Any], item: Any) -> None:
        self.item = item
        self.is_cancelled = False
        self._function = function
        self._error: BaseException | None = None
        self._unfinished = allocate_lock()
        self._unfinished.acquire()

    def run(self) -> None:
        """Make the call, unless it is cancelled. The error of a signal is raised at once."""
        try:
            self._result = None if self.is_cancelled else self._function(self.item)
        except BaseException as error:
            self._error = error
            if not isinstance(error, Exception):
                raise
        finally:
            self._unfinished.release()

    def is_finished(self) -> bool:
        """Whether the result is there. For the calling thread only."""
        if is_finished := self._unfinished.acquire(blocking=False):
            self._unfinished.release()
        return is_finished

    def result(self) -> Any:
        """Wait for the result. Raise the function's error, CancelledError where it was never called."""
        self._unfinished.acquire()
        if self.is_cancelled:
            raise _cancelled()
        if self._error is not None:
            raise self._error
        return self._result


def _cancelled() -> BaseException:
    from concurrent.futures import CancelledError  # slow to import

    return CancelledError()
