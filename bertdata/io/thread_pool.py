"""A pool of threads for functions that release the GIL: results in order with a bounded window.

The contract is that of ``process_pool``, with threads in place of processes: nothing is pickled, a worker
cannot be killed. When the pool ends, whether by an error, by a signal or by a reader that leaves early,
what has not begun is never begun, and what is in work is waited for.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, TypeVar

from bertdata.errors import BertDataError
from bertdata.io.signals import signals_held

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

WINDOW = 8
"""Items under way for each worker: many, because the thread that takes results competes with the workers."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class ThreadPool:
    """Worker threads, started at the first item; with one worker everything happens in the calling thread.

    A pool serves several passes, also one whose items come from another pass of the same pool.
    """

    def __init__(self, workers: int) -> None:
        self._size = workers
        self._executor: ThreadPoolExecutor | None = None
        self._ended = False

    def in_order(
        self, function: Callable[[Item], Result], items: Iterable[Item]
    ) -> Generator[tuple[Item, Result], None, None]:
        """Each item with ``function(item)``, in the items' order; an error of the function in its place.

        Items are taken as the window moves on, so that they may be endless: memory does not grow.
        """
        if self._size <= 1:
            for item in items:
                yield item, function(item)
            return
        under_way: deque[tuple[Item, Future[Result]]] = deque()
        try:
            for item in items:
                under_way.append((item, self._submit(function, item)))
                if len(under_way) >= WINDOW * self._size:
                    yield _first(under_way)
            while under_way:
                yield _first(under_way)
        finally:
            for _, future in under_way:
                future.cancel()

    def _submit(self, function: Callable[[Item], Result], item: Item) -> "Future[Result]":
        from concurrent.futures import (  # imported here: one worker needs none of it
            CancelledError,
            ThreadPoolExecutor,
        )

        if self._ended:
            raise CancelledError
        if self._executor is None:
            self._executor = ThreadPoolExecutor(self._size)
        try:
            with signals_held():  # a thread that starts is known to the executor a moment later
                return self._executor.submit(function, item)
        except RuntimeError as error:  # no memory, or the user's limit of threads
            raise BertDataError(f"cannot start {self._size} workers: {error}; give fewer") from None

    def close(self) -> None:
        """End the threads when they have done what they are at; nothing else is begun."""
        self._ended = True
        executor, self._executor = self._executor, None
        if executor is not None:
            with signals_held():
                executor.shutdown(cancel_futures=True)

    def __enter__(self) -> "ThreadPool":
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()


def _first(under_way: "deque[tuple[Item, Future[Result]]]") -> tuple[Item, Result]:
    item, future = under_way.popleft()
    return item, future.result()
