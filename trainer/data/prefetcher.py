"""Items computed in a thread before they are asked for."""

import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Prefetcher(Generic[Item]):
    """The items of an iterator, ``depth`` of them computed in a thread before they are asked for.

    An exception of the iterator is raised in place of its item.
    """

    def __init__(self, items: Iterator[Item], depth: int) -> None:
        self.waited = 0.0
        """Seconds that the caller spent waiting, without those for the first item."""
        self._items = items
        self._thread = ThreadPoolExecutor(1)
        self._coming = deque(self._thread.submit(next, items) for _ in range(depth))
        self._is_first = True

    def __iter__(self) -> "Prefetcher[Item]":
        return self

    def __next__(self) -> Item:
        if not self._coming:
            raise StopIteration
        start = time.perf_counter()
        item = self._coming.popleft().result()
        self.waited += 0 if self._is_first else time.perf_counter() - start
        self._is_first = False
        self._coming.append(self._thread.submit(next, self._items))
        return item

    def close(self) -> None:
        """End the thread; no more items follow."""
        self._coming.clear()
        self._thread.shutdown(wait=False, cancel_futures=True)
