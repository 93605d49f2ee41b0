"""A pool of threads for functions that release the GIL. Results come in order, with bounded memory.

It works like ``process_pool``, except that nothing is pickled and a worker cannot be killed. The pool may be
closed early: after an error, after a signal, or because the reader of the results stops. Then running calls
are finished, and calls that have not begun are dropped.

The calling thread is one of the workers: while the next result is not ready, it works on items too. An extra
thread beyond the number of cores would push other threads' data out of the processor caches.

concurrent.futures is not used, because it takes 5 ms to import and ten times the CPU time per item.
"""

import sys
from _thread import allocate_lock
from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from bertdata.errors import BertDataError
from bertdata.io.signals import delay_signals

if TYPE_CHECKING:
    from queue import SimpleQueue
    from threading import Thread

WINDOW = 8
"""Number of items per worker that ``in_order`` takes from its source ahead of the results.

It is large, because the calling thread adds no items to the queue while it works on an item itself.
"""

SWITCH_SECONDS = 0.0003
"""Seconds after which Python lets another thread run, while a pool has threads.

A worker that returns from a C++ kernel waits up to this long for the GIL. Python's default of 5 ms would be
as long as the kernels need for some items.
"""

Item = TypeVar("Item")
Result = TypeVar("Result")


class ThreadPool:
    """A pool of workers: the calling thread, and threads started with the first items.

    A pool can be used for several calls of ``in_order``. The items of a call may be the results of another
    call on the same pool.
    """

    def __init__(self, workers: int) -> None:
        self._size = workers
        self._threads: list[Thread] = []
        self._calls: SimpleQueue[_PoolCall | None]
        self._ended = False
        self._usual_switch = 0.0

    def in_order(
        self, function: Callable[[Item], Result], items: Iterable[Item]
    ) -> Generator[tuple[Item, Result], None, None]:
        """Yield each item and the result ``function(item)``, in the order of the items.

        An error of the function is raised at the place of its item. At most WINDOW items per worker are taken
        from ``items`` ahead of the results. So the items may come from an endless iterator, and memory does
        not grow.
        """
        if self._size <= 1:
            for item in items:
                yield item, function(item)
            return
        under_way: deque[_PoolCall] = deque()
        try:
            for item in items:
                under_way.append(self._submit(function, item))
                if len(under_way) >= WINDOW * self._size:
                    call = under_way.popleft()
                    yield call.item, self._wait_for_result(call)
            while under_way:
                call = under_way.popleft()
                yield call.item, self._wait_for_result(call)
        finally:
            for call in under_way:
                call.is_cancelled = True

    def _wait_for_result(self, call: "_PoolCall") -> Any:
        """Return the call's result. Until then, the calling thread makes other calls from the queue."""
        while not call.is_finished() and (waiting := self._take_waiting_call()):
            waiting.run()
        return call.result()

    def _take_waiting_call(self) -> "_PoolCall | None":
        """Take a call that no worker has started from the queue. Returns None if there is none."""
        from queue import Empty

        try:
            return self._calls.get_nowait()
        except Empty:
            return None

    def _submit(self, function: Callable[[Any], Any], item: Any) -> "_PoolCall":
        """Add an item to the queue. Starts another thread if the pool may have one more."""
        if self._ended:
            raise _make_cancelled_error()
        if len(self._threads) < self._size - 1:
            try:
                self._start_thread()
            except RuntimeError as error:  # out of memory, or the user's thread limit is reached
                raise BertDataError(f"cannot start {self._size} workers: {error}; give fewer") from None
        call = _PoolCall(function, item)
        self._calls.put(call)
        return call

    def _start_thread(self) -> None:
        """Start one worker thread."""
        from queue import SimpleQueue  # imported here because it is slow, and not needed for one worker
        from threading import Thread

        if not self._threads:
            self._calls = SimpleQueue()
        thread = Thread(target=self._work)
        # A signal between start() and append() would leave a thread that close() never ends.
        with delay_signals():
            thread.start()
            self._threads.append(thread)
            if len(self._threads) == 1:
                self._usual_switch = sys.getswitchinterval()
                sys.setswitchinterval(min(self._usual_switch, SWITCH_SECONDS))

    def _work(self) -> None:
        """Run in a worker thread: make one call after another until the queue returns None."""
        while (call := self._calls.get()) is not None:
            if self._ended:
                call.is_cancelled = True
            call.run()

    def close(self) -> None:
        """Let the threads finish their current calls, then end them. Waiting calls are cancelled."""
        self._ended = True
        with delay_signals():
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


class _PoolCall:
    """A call of a function with an item. A worker makes the call, and the calling thread takes its result."""

    __slots__ = ("_error", "_function", "_result", "_unfinished", "is_cancelled", "item")

    def __init__(self, function: Callable[[Any], Any], item: Any) -> None:
        self.item = item
        self.is_cancelled = False
        self._function = function
        self._error: BaseException | None = None
        # The lock is held until the call is finished. A thread that acquires it therefore waits for the
        # result. This is much cheaper than a threading.Event.
        self._unfinished = allocate_lock()
        self._unfinished.acquire()

    def run(self) -> None:
        """Make the call unless it is cancelled, and keep its result or error.

        KeyboardInterrupt and other exceptions that end the program are also raised at once, in the thread
        that makes the call.
        """
        try:
            self._result = None if self.is_cancelled else self._function(self.item)
        except BaseException as error:
            self._error = error
            if not isinstance(error, Exception):
                raise
        finally:
            self._unfinished.release()

    def is_finished(self) -> bool:
        """Return True if the result is ready. Only the calling thread may ask."""
        if is_finished := self._unfinished.acquire(blocking=False):
            self._unfinished.release()
        return is_finished

    def result(self) -> Any:
        """Wait for the call and return its result, or raise its error.

        Raises CancelledError if the call was cancelled.
        """
        self._unfinished.acquire()
        if self.is_cancelled:
            raise _make_cancelled_error()
        if self._error is not None:
            raise self._error
        return self._result


def _make_cancelled_error() -> BaseException:
    """Return a CancelledError."""
    from concurrent.futures import CancelledError  # imported here because it is slow to import

    return CancelledError()
